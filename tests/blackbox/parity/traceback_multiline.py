value = (
    1
    + [2][0]
    + {}["deep"]
)
