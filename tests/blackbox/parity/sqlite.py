import sqlite3

db = sqlite3.connect("test.db")
db.execute("create table t (a integer primary key, b text, c blob)")
db.executemany("insert into t (b, c) values (?, ?)", [("ü", b"\0"), ("x", None)])
db.commit()
print(db.execute("select * from t order by a").fetchall())
db.create_function("twice", 1, lambda x: x * 2)
print(db.execute("select twice(b), count(*) over () from t").fetchall())
try:
    db.execute("select nope from t")
except sqlite3.OperationalError as e:
    print(e)
db.close()
print(sqlite3.connect("file:test.db?mode=ro", uri=True).execute("select count(*) from t").fetchone())
print(sqlite3.connect(":memory:").execute("select json('{\"a\":1}')").fetchone())
