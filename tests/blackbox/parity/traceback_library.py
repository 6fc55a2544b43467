import json
import textwrap

print(textwrap.dedent("  x"))
json.loads('{"a": nope}')
