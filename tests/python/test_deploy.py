"""Units, images, manifests and pages about running a collector use only options that exist."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from programs import ROOT

pytestmark = pytest.mark.zeroxide_only

DEPLOY = ROOT / "examples" / "deploy"
UNIT = DEPLOY / "zeroxide-collector.service"
PAGES = [*(ROOT / "docs" / "pipeline").glob("*.md"), *(ROOT / "docs" / "spark").glob("*.md")]


@pytest.fixture(scope="module")
def options():
    """The flags of ``zeroxide collector``."""
    said = subprocess.check_output(
        [sys.executable, "-m", "zeroxide", "collector", "--help"], text=True
    )
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", said))


def test_variables(options):
    known = {"ZEROXIDE_COLLECTOR_" + flag[2:].replace("-", "_").upper() for flag in options}
    # Not a flag, because other users can see flags.
    known.add("ZEROXIDE_COLLECTOR_SECRET_KEY")
    for path in (*DEPLOY.iterdir(), *PAGES):
        named = set(re.findall(r"ZEROXIDE_COLLECTOR_[A-Z_]*[A-Z]", path.read_text()))
        assert named <= known, path


def test_commands(options):
    unit = re.search(r"^ExecStart=(.+)$", UNIT.read_text(), re.MULTILINE)
    image = re.search(r"^CMD (\[.+\])$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    manifest = re.search(r"args: \[(.+)\]", (DEPLOY / "collector.yaml").read_text())
    for words in (
        shlex.split(unit[1])[1:],
        json.loads(image[1]),
        [word.strip(' "') for word in manifest[1].split(",")],
    ):
        assert words[0] == "collector"
        flags = {word for word in words if word.startswith("--")}
        assert "--dir" in flags <= options


@pytest.fixture(scope="module")
def manifests():
    """The objects of the Kubernetes example, by kind."""
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load_all((DEPLOY / "collector.yaml").read_text())
    return {one["kind"]: one for one in found}


def test_the_pods_restrict_access(manifests):
    pod = manifests["StatefulSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    environment = {one["name"].removeprefix("ZEROXIDE_COLLECTOR_"): one for one in container["env"]}
    assert "OPEN_TO_NETWORK" not in environment
    assert "secretKeyRef" in environment["SECRET_KEY"]["valueFrom"], "no key in the manifest"
    mounts = {one["mountPath"]: one for one in container["volumeMounts"]}
    for name, kind in [("ALLOW", "configMap"), ("HTTP_TOKEN", "secret")]:
        folder = "/" + environment[name]["value"].split("/")[1]
        assert mounts[folder]["readOnly"]
        (volume,) = [one for one in pod["volumes"] if one["name"] == mounts[folder]["name"]]
        assert kind in volume
    assert environment["ALLOW"]["value"] != "*"
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        # Probes have no token.
        assert container[probe]["httpGet"]["path"] in ("/live", "/health")


@pytest.fixture(scope="module")
def compose():
    """The services of the Compose example, by name."""
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_compose_is_valid(tmp_path):
    pytest.importorskip("check_jsonschema")
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    path = DEPLOY / "compose.yaml"
    done = subprocess.run([*check, path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    wrong = tmp_path / path.name
    wrong.write_text(path.read_text().replace("depends_on:", "depends:"))
    assert subprocess.run([*check, wrong], capture_output=True, timeout=60).returncode == 1


def test_the_manifests_are_valid():
    validate = pytest.importorskip("kubernetes_validate")
    yaml = pytest.importorskip("yaml")
    objects = list(yaml.safe_load_all((DEPLOY / "collector.yaml").read_text()))
    for one in objects:
        validate.validate(one, "1.30", strict=True)
    (wrong,) = [one for one in objects if one["kind"] == "StatefulSet"]
    wrong["spec"]["template"]["spec"]["containers"][0]["securityContexts"] = {}
    with pytest.raises(validate.ValidationError):
        validate.validate(wrong, "1.30", strict=True)


def test_compose_is_closed_to_others(compose, options):
    collector = compose["services"]["collector"]
    flags = {word.partition("=")[0] for word in collector["command"][1:]}
    assert "--dir" in flags <= options
    assert (DEPLOY / collector["build"]["context"]).resolve() == ROOT
    assert (ROOT / collector["build"]["dockerfile"]).is_file()
    # Without keys, only these services may reach it, and this machine its page.
    assert all(port.startswith("127.0.0.1:") for port in collector["ports"])
    assert not any("5555" in port for port in collector["ports"])
    for service in compose["services"].values():
        assert "networks" not in service and "network_mode" not in service
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            assert source in compose["volumes"] or (DEPLOY / source).resolve() == ROOT / "examples"


def test_compose_services_work_together(compose, directory):
    """Their commands, with other addresses and folders, and without containers."""
    endpoint = f"ipc://{directory}/collector"

    def started(name, words):
        replaced = {
            "tcp://*:5555": endpoint,
            "tcp://collector:5555": endpoint,
            "0.0.0.0:8080": "127.0.0.1:0",
        }
        replaced |= {"/data/log": str(directory / "log"), "/examples": str(ROOT / "examples")}
        for before, after in replaced.items():
            words = [word.replace(before, after) for word in words]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    services = compose["services"]
    commands = {"collector": [sys.executable, "-m", "zeroxide", *services["collector"]["command"]]}
    for name in ("producer", "reader"):
        python, *words = services[name]["entrypoint"]
        assert python == "python" and services[name]["depends_on"].keys() == {"collector"}
        commands[name] = [sys.executable, *words]
    processes = [started(name, words) for name, words in commands.items()]
    try:
        assert re.match(r"0 temperature/\w+: ", processes[-1].stdout.readline())
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_only_chosen_pods_reach_them(manifests):
    policy = manifests["NetworkPolicy"]["spec"]
    pods = manifests["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= pods.items()
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
    ports = {one["name"] for one in manifests["Service"]["spec"]["ports"]}
    assert {port["port"] for rule in policy["ingress"] for port in rule["ports"]} == ports
    for rule in policy["ingress"]:
        assert rule["from"] and all(any(one.values()) for one in rule["from"])


def test_every_example_restricts_access(tmp_path, manifests):
    """Each of them starts with keys as written, and reports what is missing without them."""
    args = manifests["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]["args"]
    image = re.search(r"^CMD (\[.+\])$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    for words in args, json.loads(image[1]):
        words = [str(tmp_path / "log") if word == "/data/log" else word for word in words]
        words = [word.replace(":5555", ":*").replace(":8080", ":0") for word in words]
        done = subprocess.run(
            [sys.executable, "-m", "zeroxide", *words], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 1 and "--key" in done.stderr, done.stderr


def test_every_option_of_the_collector_is_on_its_page(options):
    page = (ROOT / "docs" / "pipeline" / "collector.md").read_text()
    assert [flag for flag in sorted(options) if flag != "--help" and flag not in page] == []


@pytest.mark.parametrize("unit", ["zeroxide-collector.service", "zeroxide-hello.socket"])
def test_the_units_are_valid(tmp_path, unit):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("needs systemd-analyze")
    for path in DEPLOY.glob(f"{Path(unit).stem}.*"):
        # With the options in its comments, and an existing program.
        text = re.sub(
            r"^#(?=LoadCredential=|Environment=)", "", path.read_text(), flags=re.MULTILINE
        )
        text = re.sub(r"/opt/zeroxide/bin/\w+", "/bin/true", text)
        (tmp_path / path.name).write_text(text)
    done = subprocess.run(
        [program, "verify", "--man=no", tmp_path / unit], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
