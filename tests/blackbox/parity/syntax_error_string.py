x = 'never closed
