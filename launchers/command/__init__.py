"""From the words of a command to a request, and what is shown of it before it starts."""
