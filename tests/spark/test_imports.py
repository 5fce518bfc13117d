"""Imports happen only when needed, and a failed import is reported."""

import subprocess
import sys


def run(source):
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)


def test_the_package_imports_little_until_it_is_used():
    done = run(
        "import sys, zeroxide.spark\n"
        "heavy = {'pyspark', 'pyarrow', 'numpy', 'pandas'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    assert done.returncode == 0, done.stderr


def test_registration_finds_the_class_in_its_module():
    done = run(
        "import sys, pyspark_zeromq\n"
        "assert pyspark_zeromq.DefaultSource.name() == 'zeromq'\n"
        "assert pyspark_zeromq.DefaultSource.__module__ == 'zeroxide.spark.source'\n"
    )
    assert done.returncode == 0, done.stderr


def test_registration_survives_a_broken_package():
    done = run(
        "import sys, pickle\n"
        "sys.modules['zeroxide'] = None\n"
        "import pyspark_zeromq\n"
        "from pyspark.sql.datasource import DataSource\n"
        "source = pyspark_zeromq.DefaultSource\n"
        "assert issubclass(source, DataSource) and source.name() == 'zeromq'\n"
        "assert pickle.loads(pickle.dumps(source)) is source\n"
        "try:\n"
        "    source({})\n"
        "except ImportError as error:\n"
        "    assert 'cannot be imported here' in str(error), error\n"
        "else:\n"
        "    sys.exit('it did not raise')\n"
    )
    assert done.returncode == 0, done.stderr


def test_registration_survives_the_absence_of_pyspark():
    done = run("import sys\nsys.modules['pyspark'] = None\nimport pyspark_zeromq")
    assert done.returncode == 0, done.stderr


def test_a_session_without_pyspark_names_what_to_install():
    done = run(
        "import sys\n"
        "sys.modules['pyspark'] = None\n"
        "import zeroxide.spark\n"
        "zeroxide.spark.ensure_java = lambda: None\n"
        "zeroxide.spark.session()\n"
    )
    assert done.returncode == 1
    assert "pip install 'zeroxide[spark]'" in done.stderr.splitlines()[-1]
