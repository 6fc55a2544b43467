import email.message
import html
import ipaddress
import mimetypes
import urllib.parse

m = email.message.EmailMessage()
m["Subject"] = "Grüße"
m.set_content("hällo")
print(m.as_bytes())
print(urllib.parse.urlsplit("http://u@h:1/p?q=1#f"), urllib.parse.quote("ü/ "), html.escape("<a&\">"))
print(mimetypes.guess_type("x.tar.gz"), ipaddress.ip_network("10.0.0.0/30").num_addresses)
