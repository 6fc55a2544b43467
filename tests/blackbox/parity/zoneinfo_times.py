import datetime as dt
import os
import time
import zoneinfo

z = zoneinfo.ZoneInfo("Europe/Berlin")
print(dt.datetime(2024, 7, 1, tzinfo=z).isoformat(), dt.datetime(2024, 1, 1, tzinfo=z).tzname())
print(len(zoneinfo.available_timezones()) > 300)
os.environ["TZ"] = "America/New_York"
time.tzset()
print(time.tzname, time.timezone, time.localtime(0).tm_hour)
print(dt.datetime.fromtimestamp(0, dt.UTC), time.strftime("%Z", time.gmtime(0)))
print(dt.datetime.strptime("2024-02-29", "%Y-%m-%d").date() + dt.timedelta(days=366))
