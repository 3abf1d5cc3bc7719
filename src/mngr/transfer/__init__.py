"""What runs on the caller's machine: code, files and agents from one machine to another."""
