"""The command line. The only part of mngr that prints, prompts, reads `sys.argv` or exits."""
