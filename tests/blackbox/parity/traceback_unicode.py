größe = "ü€🌱"
raise ValueError(größe, "a\udc80b")
