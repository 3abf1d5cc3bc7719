"""What tests share: a user of their own, with a home, a tmux server and a repository."""
