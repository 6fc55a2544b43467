open(__file__, "w").write("# other text\n" * 10)
raise ValueError("the line changed")
