import sys
import gozkd_testkit.kazoo
sys.modules["kazoo.testing"] = gozkd_testkit.kazoo
