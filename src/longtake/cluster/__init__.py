"""Many films and many questions on many machines: tasks, and the engines that run them."""
