"""What runs inside a sandbox's Python: the zygote's start and the life of one program."""
