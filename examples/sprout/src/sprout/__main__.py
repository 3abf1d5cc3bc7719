from sprout.cli import main

main()
