"""tornado's `log`. Deprecated."""

from tornado.log import app_log as app_log
from tornado.log import gen_log as gen_log
