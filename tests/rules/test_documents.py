"""Every command of the documents has a row in COMMANDS and works in a copy of a fresh clone.

A row runs its command as it stands, with a reader's file names and addresses instead of the document's. Or it runs as
much as this machine and a few seconds allow, and says why no more (shown by pytest -rA and the XML report). Or it names
the test that runs it. SCONCE_BENCH_PYTHON names a Python with torch, for commands that need it.
"""
import functools
import os
import subprocess

import documents
import pytest
from clone import Clone
from document_rows import (asked, bench, both, built, compiled_here, conformance, ctest, dev_serves, generated, healthy, in_file,
                           ninja, of_cluster, of_dev, on_two_servers, packed, pip, pytest_file, refused_device, renamed_images, rooms,
                           run_by, said, script, serves, serves_tls, shown, subcommand)
from documents import ROOT

FOUND, TEXTS = documents.read_all()


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    return Clone(tmp_path_factory.mktemp("clone"))


GPU, NETWORK = "needs a GPU", "needs PyPI"
needs_torch = functools.partial(script, needs_torch=True)
weights_example = run_by("tests/server/test_weights_example.py::test_example", "the blocks of docs/weights.md in their order")

COMMANDS = {
    # ./dev and what it runs
    "./dev serve": run_by("tests/rules/test_readme.py::test_dev_serve_and_its_curl_line"),
    "./dev serve model.pt2": dev_serves,
    **{line: of_dev for line in (
        "./dev build", "SCONCE_PRESET=debug ./dev build", "./dev format", "./dev lint", "./dev lint --all")},
    **{line: run_by("tests/server/test_core.py::test_it_serves") for line in (
        "./dev build core", "build/release/server/core/sconce")},
    **{line: run_by("tests/server/test_core.py::test_help_marks_what_is_missing") for line in (
        "sconce --help", "sconce serve --help")},
    "sconce weights push --sign": run_by("tests/server/test_core.py::test_commands_of_missing_parts_name_the_option"),
    "./dev conformance tests/data/basics.tar.xz --filter pooling": conformance,
    "./dev test": of_dev,
    "./dev test --long": of_dev,
    "./dev test --long [SECONDS]": of_dev,
    "SCONCE_PRESET=asan ./dev test": of_dev,
    "SCONCE_PRESET=tsan ./dev test": of_dev,
    "./dev bench": bench,
    "ctest --test-dir build/release": ctest,
    "cmake --install": run_by("tests/CMakeLists.txt::install"),
    "tests/docker/run.sh": both(script(), in_file("dev", "bash tests/docker/run.sh", "./dev test --long runs it")),
    "PACKAGES=dist tests/docker/run.sh": both(script(), in_file("dev", "bash tests/docker/run.sh", "./dev test runs it")),
    "PACKAGES=dist tests/docker/run.sh cuda": script(without="what ./dev deb cuda writes, and 10 GB"),
    "ARCHITECTURES=90 tests/docker/run.sh cuda": script(without="an hour and 10 GB"),
    "tests/python/export_torches.sh 2.8 2.14": script(without="an hour and 6 GB for each version of torch"),
    **{f"tests/sanitizers/apis.sh{kind}": script(without="half an hour, to build libsconce with a sanitizer")
       for kind in ("", " thread")},
    "tests/fuzz/run.sh SECONDS [ENTRY...]": both(script(), in_file("dev", "tests/fuzz/run.sh", "./dev test --long runs it")),
    "pip install tritonclient[http]": pip(),
    "pip install tritonclient[grpc]": pip(),
    "systemctl reload sconce": in_file("conf/sconce.service", "\nExecReload=/bin/kill -HUP $MAINPID\n",
                                       "no systemd here: its unit sends SIGHUP, which tests/server/test_tls.py tries"),
    # The wheel and the Debian packages
    "./dev deb": of_dev,
    "./dev wheel": of_dev,
    "./dev wheel cuda": of_dev,
    "./dev deb cuda": of_dev,
    **{f"tests/packaging/{kind}.sh": both(script(), in_file("dev", 'bash "tests/packaging/$kind.sh"', "./dev test runs it"))
       for kind in ("wheel", "debian")},
    "tests/console/take_pictures.py": script(without="a minute, Chromium and Pillow"),
    "tests/lint/read_sources.py":
        in_file("tests/lint/run.sh", "python3 tests/lint/read_sources.py", "minutes: ./dev lint runs it"),
    "tests/packaging/archive.sh": both(script(), in_file("dev", "bash tests/packaging/archive.sh", "./dev test runs it")),
    "tests/packaging/cuda.sh": script(without="an hour for the build that it looks at"),
    "pip install dist/sconce-0.1.0-py3-none-manylinux_2_34_x86_64.whl": in_file(
        "packaging/wheel.py", 'TAG = "manylinux_2_34_x86_64"', "tests/packaging/wheel.sh installs it in bare roots"),
    "pip install dist/sconce_cuda-0.1.0-py3-none-manylinux_2_34_x86_64.whl": in_file(
        "packaging/cuda_wheel.py", "dist/sconce_cuda-VERSION-py3-none-manylinux_2_34_x86_64.whl", "installs 2 GB from PyPI"),
    "apt-get install ./dist/libsconce0_0.1.0_amd64.deb ./dist/sconce_0.1.0_amd64.deb": in_file(
        "tests/packaging/debian.sh", "apt-get -q install -y --no-install-recommends /packages/*.deb", "run in bare roots"),
    "apt-get install ./dist/sconce-cuda_0.1.0_amd64.deb": in_file(
        "tests/packaging/cuda.sh", "install /packages/cuda.deb", "run in bare roots"),
    "systemctl enable --now sconce": in_file("conf/sconce.service", "WantedBy=multi-user.target", "no systemd here: the unit says when"),
    "tar -xf dist/sconce-0.1.0-linux-x86_64.tar.zst -C /opt": in_file(
        "tests/packaging/archive.sh", 'tar -xf "$archive" -C', "run in bare roots"),
    # The image, and Kubernetes
    **{line: run_by("tests/kubernetes/test_manifests.py::test_images_have_the_tag_that_the_documents_build_and_push",
                    "tests/docker/run.sh builds it and pushes it to a registry") for line in (
        "docker build -f docker/Dockerfile.cpu -t registry.example.com/sconce:0.1.0 .",
        "docker push registry.example.com/sconce:0.1.0",
        "docker build -f docker/Dockerfile.cpu --build-arg GRPC=yes -t registry.example.com/sconce-grpc:0.1.0 .",
        "docker build -f docker/Dockerfile.cuda -t registry.example.com/sconce-cuda:0.1.0 .")},
    "sed -i 's|registry.example.com|registry.of.yours:5000/team|' $(grep -rl registry.example.com examples/kubernetes)": renamed_images,
    'kubectl create secret generic sconce-token -n sconce --from-literal=token="$(openssl rand -hex 24)"': in_file(
        "examples/kubernetes/base/deployment.yaml", "secret: {secretName: sconce-token", "no cluster: the manifest wants that secret"),
    "kubectl apply -k examples/kubernetes/overlays/cpu": run_by(
        "tests/kubernetes/test_rendered.py::test_valid", "no cluster: what kubectl renders against Kubernetes' schemas"),
    **{f"kubectl apply -f examples/kubernetes/kserve/{name}.yaml": run_by(
        "tests/kubernetes/test_manifests.py::test_valid", "no cluster: the manifests against Kubernetes' schemas")
       for name in ("runtimes", "services")},
    # The runbook
    **{line: of_cluster for line in (
        "kubectl set image deployment/sconce -n sconce sconce=registry.example.com/sconce:0.1.0",
        "kubectl rollout status deployment/sconce -n sconce --timeout=10m",
        "kubectl rollout undo deployment/sconce -n sconce",
        "kubectl drain NODE --ignore-daemonsets --delete-emptydir-data")},
    **{f"sh {block}": run_by(f"tests/server/test_runbook.py::test_{test}", "the blocks of docs/runbook.md")
       for test, blocks in {
           "look": ["look"], "upgrade": ["check", "upgraded"], "rollback": ["roll-back"], "drain": ["drain"],
           "a_lost_node": ["push-without-a", "back"], "a_node_that_is_lost_in_the_middle_of_a_push": ["gone"],
           "split_weights": ["split", "right"], "a_load_that_is_stuck": ["index", "load"],
           "a_full_disk": ["not-kept", "keep-again"]}.items() for block in blocks},
    **{line: run_by("tests/python/test_first_answer.py::test_the_lines_of_the_readme") for line in (
        "sconce serve linear.pt2",
        """curl -s http://127.0.0.1:8000/v1/models/linear:call -d '{"args": [[[1, 2, 3, 4, 5, 6, 7, 8]]]}'""")},
    # Ray Serve
    "pip install -r examples/ray/requirements.txt": in_file(
        "tests/long/ray/requirements.txt", "ray[serve]==2.60.0", "installs from PyPI: tests/long/ray has the same version"),
    **{f"sh ray_{block}": run_by("tests/long/ray/test_readme.py::test_the_blocks") for block in ("run", "ask", "weights")},
    "tests/long/ray/run.sh SCONCE": script(without="five minutes, and Ray"),
    "python tests/bench/fleet/ray_serve.py": needs_torch(),
    # The Python package
    "pip install -r python/requirements-build.txt": in_file(
        "python/requirements-build.txt", "nanobind==", "installs from PyPI: the file names what CMake asks the Python for"),
    "cmake --preset release -DSCONCE_PYTHON=ON -DPython_EXECUTABLE=$(command -v python3)": in_file(
        "CMakeLists.txt", "option(SCONCE_PYTHON ", "needs nanobind: the option exists"),
    "ninja -C build/release sconce_python_package": in_file(
        "python/CMakeLists.txt", "add_custom_target(sconce_python_package ", "needs nanobind: the target exists"),
    "pytest tests/python": pytest_file,
    "tests/bench/python/compare.py": needs_torch(),
    # The program
    "sconce serve": subcommand,
    "sconce serve --print-config": run_by("tests/server/test_serve.py::test_conf_file_is_what_the_program_prints"),
    "sconce pull": subcommand,
    "sconce run": subcommand,
    "sconce bench": subcommand,
    "sconce check": subcommand,
    "sconce inspect": subcommand,
    "sconce top": subcommand,
    "sconce top http://127.0.0.1:8003": run_by("tests/server/test_top.py::test_the_screen"),
    **{f"sconce bench model.pt2 --html {rest}": run_by("tests/commands/program_test.cpp::program: bench writes a page")
       for rest in ("before.html", "after.html --against before.html")},
    "sconce inspect model.pt2 --html model.html": run_by("tests/commands/program_test.cpp::program: inspect writes a page"),
    "sconce weights": subcommand,
    "sconce weights push": subcommand,
    "sconce inspect model.pt2": shown("RESULT[class]", "features.0.weight"),
    "sconce check model.pt2": shown("model.pt2: ok"),
    "sconce verify": subcommand,
    "sconce compare": subcommand,
    **{f"sconce compare {words}": run_by("tests/server/test_compare.py::test_python_gets_the_arguments")
       for words in ("model.pt2 module:function", "small.pt2 models.py:example --weights")},
    "sconce run model.pt2 --input NAME=FILE": shown("[9]", NAME="ARGS[0]", FILE="image.json"),
    "sconce bench model.pt2": shown("runs/s", pt2="pt2 --duration 0.05"),
    "sconce sign": subcommand,
    "sconce pack": subcommand,
    **{line: run_by("tests/server/test_signing.py::test_sign_and_verify") for line in (
        "sconce sign --key KEY FILE...", "sconce verify --key PUBLIC_KEY FILE...", "sconce verify --key")},
    "sconce weights push --sign key.pem": run_by("tests/server/test_signing.py::test_pushed_by_the_program"),
    "tests/long/signing/run.sh": script(without="model_signing of PyPI"),
    "tests/long/detectors/run.sh SCONCE": script(without="torchvision, and ten minutes of compiling"),
    "openssl rand -hex 32": run_by("tests/server/test_signing.py::test_sealed_sets_serve_again"),
    **{line: run_by("tests/server/test_signing.py::test_the_blocks_of_the_document") for line in (
        "sh sign", "sh require", "sh inside", "sh signed_upload")},
    "sconce ops": shown("aoti_torch_cpu_convolution\n"),
    "sconce health": healthy,
    "sconce pack DIRECTORY model.pt2": packed,
    "sconce pull URL": run_by("tests/server/test_remote.py::test_a_signature_comes_along_and_both_are_placed"),
    "sconce pull https://models.example/ranker.pt2 --to models":
        run_by("tests/server/test_remote.py::test_a_signature_comes_along_and_both_are_placed"),
    "sconce pull s3://models/ranker.pt2 --to models": run_by("tests/server/test_remote.py::test_a_whole_prefix_is_pulled"),
    "sconce serve s3://models/production --watch 1s":
        run_by("tests/server/test_remote.py::test_what_changes_is_noticed_and_what_goes_is_unloaded"),
    "sconce serve ranker=hf://org/ranker@v3/ranker.pt2": run_by(
        "tests/server/test_remote.py::test_a_package_and_a_repository_are_served", "with an address of the web"),
    "sconce serve PACKAGE_OR_REPOSITORY...": serves(("PACKAGE_OR_REPOSITORY...", "model.pt2")),
    "sconce serve PACKAGE_OR_REPOSITORY... [--config FILE] [--set MODEL.KEY=VALUE]": serves(
        ("PACKAGE_OR_REPOSITORY...", "repository"), ("[--config FILE]", "--config CLONE/conf/sconce.conf"),
        ("[--set MODEL.KEY=VALUE]", "--set digits.queue=4")),
    "sconce serve model.pt2 --set model.sets=1000 --set model.sets_memory=2G --set model.sets_folder=SETS": serves(),
    "sconce serve decoder.pt2 --set decoder.sequences=256 --set decoder.sequences_memory=4G": run_by(
        "tests/server/test_sequences.py::test_the_document"),
    "sconce serve lm.pt2 --set lm.buffers.loop=buffers.json --set lm.buffers.sequences=16": run_by(
        "tests/server/test_generate.py::test_the_document"),
    'curl -N localhost:8000/v2/models/lm.buffers/generate_stream -d \'{"prompt": [0, 12, 5], "max_tokens": 20, "seed": 7}\'': run_by(
        "tests/server/test_generate.py::test_the_document"),
    "tests/cuda/generate.py SCONCE": script(needs_torch=True, without=GPU),
    "tests/cuda/generate_rows.py SCONCE": script(needs_torch=True, without=GPU),
    "sconce serve OUT/lm.pt2 --set lm.buffers.loop=OUT/buffers.json --set lm.explicit.loop=OUT/explicit.json --set '*.sequences=16'":
        run_by("tests/server/test_generate.py::test_the_example", "where SCONCE_BENCH_PYTHON has torch"),
    "python examples/language_model/train.py OUT": script(needs_torch=True),
    'python examples/language_model/talk.py OUT/tokens.json "the old fo"': script(without="no server"),
    "python tests/bench/generate/generate.py build/release/server/sconce build/lm": script(needs_torch=True),
    "python examples/language_model/train.py build/lm": script(needs_torch=True),
    "sconce serve /models": serves(("/models", "repository")),
    "sconce serve /models --load demand --memory-budget 8G --watch 5s": serves(("/models", "repository")),
    "sconce serve a.pt2 b.pt2 p.pipeline.json": run_by("tests/server/test_pipelines.py::test_the_document"),
    "sconce serve m=m.pt2": serves(),
    "sconce serve model.pt2 --otlp http://collector:4318": serves(),
    "sconce serve --grpc 127.0.0.1:8001 model.pt2": serves(),
    "sconce serve M=/mnt/models/model.pt2 --http 0.0.0.0:8080": serves(("/mnt/models/", "")),
    "sconce serve model.pt2 --set model.devices=cuda": refused_device,
    "sconce serve ... --http-tls on --admin-tls mutual --tls-certificate server.pem --tls-key server.key --tls-client-ca "
    "clients.pem": serves_tls(),
    "sconce serve ... --http-tls mutual --http-tls-client-ca clients.pem --admin-tls mutual --admin-tls-client-ca admins.pem":
        serves_tls(" --tls-certificate server.pem --tls-key server.key"),
    "curl -s http://127.0.0.1:8000/v1/models/digits:call -d @examples/digits/request.json": asked({"class": [9]}),
    "curl -s localhost:8000/v2/models/digits/generate -d '{\"INPUT__0\": [0, 0, 5, ...]}'": generated,
    "curl -s localhost:8000/v1/models/m:predict -d '{\"instances\": [[0.1, 0.2]]}'":
        run_by("tests/server/test_migrating.py::test_the_curl_lines"),
    "curl -s localhost:8000/v1/models/m:predict -d '{\"instances\": [[1, 2], [3, 4]]}'":
        run_by("tests/server/test_migrating.py::test_the_curl_lines"),
    "curl -s localhost:8080/predictions/m -T image.json":
        run_by("tests/server/test_migrating.py::test_rows_of_torchserve", "TorchServe's own line: what is said to it here"),
    "curl -s localhost:8501/v1/models/m:predict -d '{\"instances\": [[1, 2], [3, 4]]}'":
        run_by("tests/server/test_migrating.py::test_the_curl_lines", "TensorFlow Serving's own line, with Sconce's port"),
    "perf_analyzer -m resnet -u localhost:8000 --concurrency-range 1:64 --shape ARGS[0]:3,224,224": both(
        run_by("tests/server/test_client_exam.py::test_perf_analyzer"),
        in_file("tests/bench/http/perf_analyzer.py", '"--concurrency-range", "4", "--shape", "ARGS[0]:8,8"',
                "the program itself, from PyPI, in ./dev test --long")),
    "curl -s http://127.0.0.1:8003/v2/admin/models/digits/weights": run_by(
        "tests/server/test_weights_example.py::test_example", "the block `push` of docs/weights.md sends it"),
    "sh serve": weights_example,
    "sh client": weights_example,
    "sh push": weights_example,
    **{line: run_by("tests/server/test_weights_example.py::test_restart", "the blocks of docs/weights.md in their order")
       for line in ("sh kept", "sh keep")},
    "sh rollback": weights_example,
    "sh shadow": run_by("tests/server/test_shadow.py::test_the_example", "the block of docs/validation.md"),
    "sconce weights diff digits.pt2 digits-v2.safetensors": run_by("tests/commands/program_test.cpp::program: weights diff shows"),
    "sconce weights push FILE --model M --to URL,URL": on_two_servers,
    "sconce weights push digits-v2.safetensors --model digits --label v2 --to http://a:8003,http://b:8003": on_two_servers,
    "sconce weights status --model digits --to http://a:8003,http://b:8003": on_two_servers,
    "sconce weights push digits-v2.safetensors --model digits --guard 60s --guard-p99 5ms --to http://a:8003,http://b:8003":
        on_two_servers,
    "sconce weights rollback --model digits --to http://a:8003,http://b:8003": on_two_servers,
    "sconce weights reconcile --model digits --to http://a:8003,http://b:8003": on_two_servers,
    "sconce weights status --digest": on_two_servers,
    "sconce weights golden --model digits --to http://a:8003 --requests 100 --out golden.safetensors": run_by(
        "tests/server/test_golden.py::test_the_command_under_load"),
    "sconce serve digits.pt2 --set digits.golden=golden.safetensors": run_by(
        "tests/server/test_golden.py::test_digits_by_tolerance_and_by_argmax"),
    # The client, and making packages
    **{f"python {label}": run_by("tests/python/test_client.py::test_the_blocks_of_the_document")
       for label in ("first", "options", "async", "weights")},
    **{f"python {label}": run_by("tests/python/test_export.py::test_a_block_of_the_document", "where torch and the library are")
       for label in ("small", "torchvision", "timm", "transformers", "diffusion")},
    "python later": run_by("tests/python/test_export.py::test_a_block_of_the_document", "verified after the block `small`"),
    "python -m sconce.compare small.pt2 models.py:example --weights": run_by("tests/python/test_export.py::test_compare"),
    "apt-get install g++": in_file("dev.packages", "g++", "the file names it for ./dev"),
    "sconce serve small.pt2": serves(("small", "model")),
    # The C API
    **{line: run_by("tests/c_api/CMakeLists.txt::embed_ctypes") for line in (
        "examples/embed_ctypes.py", "python3 examples/embed_ctypes.py LIBSCONCE model.pt2")},
    "sconce inspect --json": shown('"call_spec"', json="json model.pt2"),
    # Tests by their names
    "SCONCE_PROGRAM=build/release/server/sconce .venv/bin/python -m pytest -q tests/server/test_serve.py": pytest_file,
    **{f"pytest tests/server/test_{name}.py": pytest_file
       for name in ("bad_input", "client_exam", "device_memory", "generate", "migrating", "openapi", "prometheus", "remote",
                    "triton_config")},
    "build/release/tests/test_ROOM": rooms,
    'build/release/tests/test_cpu -tc="cumsum*"': built(tests="tests/cpu"),
    'test_custom_ops -tc="draws*"': built(tests="tests/custom_ops"),
    'SCONCE_CASES=build/opinfo/calls.cases build/release/tests/custom_ops/test_custom_ops -tc="aten: what random*"':
        built(tests="tests/custom_ops"),
    "TSAN_OPTIONS=suppressions=tests/sanitizers/tsan.supp build/tsan/tests/test_runner": built(),
    # The fault campaign
    **{f"./dev faults{words}": run_by("tests/faults/test_faults.py::test_nothing_is_lost", "each kind of fault, in its short form")
       for words in ("", " [MINUTES]", " 20", " 5 --only calls/load --seed 2 --every 1",
                    " 1 --only calls/load")},
    **{f"./dev faults soak {minutes}": run_by("tests/faults/test_faults.py::test_the_soak_is_flat")
       for minutes in ("[MINUTES]", "10")},
    # Comparisons with PyTorch
    "pip install torch==2.15.0 numpy expecttest": pip("tests/harvest"),
    "pip install torch==2.15.0 numpy scipy expecttest": pip("tests/opinfo"),
    "ninja -C build/release sconce_conformance": ninja,
    "ninja -C build/release test_cpu": ninja,
    "sconce_conformance --device cuda SUITE": built("tests/conformance/main.cpp"),
    "tests/truth/run.py": script(),
    "python tests/truth/run.py build/release/testing --draws 100000 --seed 1":
        needs_torch(reduced="BUILD/testing --draws 36 --seed 1"),
    "SCONCE_CPU_ISA=avx2 python tests/truth/run.py build/release/testing --threads 2": needs_torch(),
    "python tests/truth/run.py FOLDER --device cuda --draws 60000": needs_torch(without=GPU),
    "python tests/truth/run.py build/release/testing --draw matmul:1:275": needs_torch(reduced="BUILD/testing --draw matmul:1:275"),
    "tests/truth/models.py": needs_torch(),
    "tests/truth/relations.py": needs_torch(),
    "python tests/truth/relations.py build/release/src/libsconce.so FOLDER --models 24 --relations 24 --draws 400": needs_torch(),
    "tests/package_format/wrapper/rows/draw_row_models.py": needs_torch(),
    "python tests/package_format/wrapper/rows/count_row_proofs.py build/release/server/sconce tests/server/packages/batching.tar.xz":
        script(),
    'test_package_format -tc="generated rows*"': built(tests="tests/package_format"),
    'test_package_format -tc="size relations*"': built(tests="tests/package_format"),
    "tests/truth/rows/compare.py": needs_torch(reduced="--graphs 40 --workers 1"),
    "tests/truth/rows/architectures.py": needs_torch(without="it needs timm and transformers"),
    "python tests/truth/rows/compare.py --graphs 20000 --seed 3": needs_torch(reduced="--graphs 40 --workers 1"),
    "python tests/truth/rows/compare.py --graphs 150 --seed 4 --prove export": needs_torch(reduced="--graphs 4 --workers 1 --prove export"),
    "python tests/truth/rows/architectures.py": needs_torch(without="it needs timm and transformers"),
    "tests/truth/on_gpu.sh": script(without=GPU),
    "tests/opinfo/run.py": needs_torch(),
    "python tests/opinfo/run.py --samples 5000 --seed 1": needs_torch(),
    "python tests/opinfo/calls.py --samples 5000 --seed 1": needs_torch(),
    "python tests/harvest/run.py --tests PYTORCH/test/inductor test_aot_inductor:AOTInductorTestABICompatibleCpu":
        needs_torch(without="PyTorch's tests are no part of its packages"),
    "python tests/harvest/matrix.py": needs_torch(),
    "python tests/harvest/matrix.py --options . --models everything": needs_torch(),
    "python tests/harvest/matrix.py --versions 2.6 2.7 2.8": script(without=NETWORK),
    "tests/custom_ops/make_opinfo_cases.py": needs_torch(without="it writes tests/data/opinfo.cases"),
    "examples/digits/retrain.py": needs_torch(),
    "tests/server/kserve_client.py SCONCE": script(without="it needs KServe's client, 450 MB"),
    # GPUs
    "tests/cuda/run_on_gpu.sh": script(without=GPU),
    "tests/cuda/several_gpus.py": script(without=GPU),
    "tests/cuda/faults.py": script(without=GPU),
    "tests/cuda/served_weights.py": script(without=GPU),
    "tests/cuda/served_weights.py SCONCE --device cpu":
        script(without=GPU, reduced="BUILD/server/sconce --device cpu --only chosen,two_servers"),
    "tests/cuda/served_weights.py SCONCE --only sequences": script(without=GPU),
    "tests/cuda/trainer_ipc.py": script(without=GPU),
    "tests/cuda/shared_memory.py": script(without=GPU),
    "tests/cuda/shared_memory.py SCONCE PT2...": script(without=GPU),
    "tests/cuda/against_torch.py": script(without=GPU),
    "against_torch.py LIBRARIES --times": needs_torch("tests/cuda/against_torch.py", without=GPU),
    "bench_cuda_call --cycles 1000": built("tests/bench/cuda/call.cpp"),
    "bench_cuda_call --memory": built("tests/bench/cuda/call.cpp"),
    "bench_cuda_call PACKAGE": built("tests/bench/cuda/call.cpp"),
    "bench_cuda_call --unchecked-indices PACKAGE": built("tests/bench/cuda/call.cpp"),
    "tests/bench/cuda/compare.py BENCH PACKAGE...": needs_torch(without=GPU),
    "python tests/bench/cuda/models.py build/release/tests/bench_cuda_call build/release/tests/bench_cuda_update":
        needs_torch(without=GPU),
    # Speed
    "tests/bench/build_time.py": script(),
    "tests/bench/loader/compare.py --whole --filter mlp": needs_torch(),
    "ninja -C build/release bench_sconce_loader": ninja,
    "python tests/bench/models/compare.py": needs_torch(),
    "ninja -C build/release bench_ops": ninja,
    "python tests/bench/ops/compare.py": needs_torch(),
    "python tests/bench/ops/compare.py --intel": needs_torch(),
    "ninja -C build/release update_bench": ninja,
    "tests/bench/update/run.py": script(),
    "ninja -C build/release sets_bench": ninja,
    "tests/bench/sets/run.py": script(),
    "ninja -C build/release upload_bench bench_staging": ninja,
    "build/release/tests/bench_staging": built(),
    "tests/bench/update/upload.py": script(),
    "tests/bench/update/many.py": script(),
    "ninja -C build/release http_bench": ninja,
    "build/release/tests/bench/http/http_json_bench": built(),
    "build/release/tests/bench/http/http_library_bench": in_file(
        "tests/bench/http/CMakeLists.txt", "add_executable(http_library_bench ", "needs libraries that nothing else here needs"),
    "tests/bench/http/run.py": script(),
    "tests/bench/http/overload.py": script(),
    "ninja -C build/release sconce_program fake_models": ninja,
    "tests/bench/http/idle.py --models 100": script(),
    "tests/bench/start/start.py build/release/server/sconce": script(),
    "tests/bench/fleet/simulate.py": both(script(), run_by("tests/bench/fleet/test_fleet.py::test_the_tables_of_the_document")),
    "tests/bench/http/consoles.py": script(),
    "tests/bench/fleet/on_demand.py build/release/server/sconce": script(),
    "curl --parallel": in_file("tests/bench/fleet/pull.py", '"curl", "-s", "--parallel"', "pull.py gives it the ranges, nginx and the time"),
    "tests/bench/http/peers.py": script(without=NETWORK),
    "ninja -C build/release grpc_bench": ninja,
    "tests/bench/http/grpc_peers.py": script(without=NETWORK),
    "tests/bench/http/perf_analyzer.py": script(without=NETWORK),
    "ninja -C build/release http_bench fake_models": ninja,
    "tests/bench/http/pipelines.py": script(without=NETWORK),
}


@pytest.mark.parametrize("command", sorted({*FOUND, *COMMANDS}))
def test_command(command, clone, record_property):
    assert command in COMMANDS, f"{', '.join(FOUND[command])}: a command without a row in COMMANDS"
    assert command in FOUND, "no document has this command"
    reason = COMMANDS[command](clone, command)
    if reason:
        record_property("reduced", reason)
        print(f"{command}: {reason}")


# Other code, by its first line

OTHERS = {
    "torch.export.export(model, inputs)": said,
    '{"class":[9],"probabilities":[[...]]}': run_by("tests/rules/test_readme.py::test_dev_serve_and_its_curl_line"),
    "import numpy as np, tritonclient.http as triton": both(
        run_by("tests/server/test_client_exam.py::test_the_lines_of_the_readme", "README.md"),
        run_by("tests/server/test_migrating.py::test_the_lines_for_tritons_client", "docs/migrating.md")),
    "import numpy as np, tritonclient.grpc as triton": both(
        run_by("tests/server/test_grpc.py::test_the_lines_of_the_document", "docs/grpc.md"),
        run_by("tests/server/test_sequences.py::test_the_document", "docs/sequences.md")),
    **{f'data: {{"model_name":"lm.buffers","model_version":"1",{rest}}}': run_by(
        "tests/server/test_generate.py::test_the_document")
       for rest in ('"token":17,"step":0', '"token":3,"step":1', '"steps":2,"finish_reason":"stop"')},
    '{"token": {"input": "tokens", "output": "logits"},': run_by("tests/server/test_generate.py::test_the_document"),
    **{line: run_by("tests/python/test_document.py::test_the_blocks_of_the_document") for line in (
        "import numpy as np, sconce", "future = model.submit(images)", "weights = model.state_dict()",
        'print(sconce.inspect("digits.pt2")')},
    "import sconce, torch": run_by("tests/python/test_first_answer.py::test_the_lines_of_the_readme"),
    "import torch": compiled_here,
    "torch._inductor.aoti_compile_and_package(program": in_file(
        "tests/server/make_inlined_packages.py", '{"always_keep_tensor_constants": True}',
        "compiled with that option: the packages of tests/server/test_inlined_weights.py"),
    '{"model": "digits", "version": "1", "from": "active",': run_by(
        "tests/server/test_admin.py::test_how_far_another_set_is_from_the_active_one"),
    '{"model": "digits", "version": "1", "state": "rolled_back",': run_by(
        "tests/server/test_guard.py::test_failures_in_the_model"),
    '{"model": "digits", "version": "1", "share": 0.1,': run_by(
        "tests/server/test_shadow.py::test_differences_are_those_of_the_two_sets_answers"),
    '{"model": "digits", "version": "1", "weight_version": ': said,
    '{"weight_version": 9, "digest": "sha-256:..."}': run_by(
        "tests/server/test_set_version.py::test_who_asks_says_which_set_is_meant"),
    '{"model": "digits", "version": "1", "limit": 1000,': run_by("tests/server/test_sets.py::test_list_and_one"),
    '{"model": "digits", "version": "1", "file": "golden.safetensors",': run_by(
        "tests/server/test_golden.py::test_what_passes_is_staged"),
    '{"state": "running", "requests": 100,': run_by("tests/server/test_golden.py::test_live_answers_become_a_golden_file"),
    '{"enabled": true, "rate": 1, "traces": [': run_by("tests/server/test_traces.py::test_the_last_traces_without_a_file"),
    '{"time": "2026-01-31T12:00:00.000Z", "event": "committed",': run_by(
        "tests/server/test_audit.py::test_every_event_once_and_in_order"),
    '{"scopes": ["metrics"], "token_needed": true,': run_by(
        "tests/server/test_console_server.py::test_access_says_what_a_token_allows"),
    '{"lines": [{"seq": 41,': run_by("tests/server/test_console_server.py::test_the_last_lines_of_the_log"),
    '{"operation": "7", "model": "digits",': said,
    '{"model_name":"digits","model_version":"1",': said,
    '{"inputs": ["x"], "outputs": ["y"], "steps": [': run_by("tests/server/test_pipelines.py::test_the_document"),
    "step 2 (model 'b'): input 'INPUT__0', tensor 'mid':": run_by(
        "tests/server/scheduling/pipelines/pipeline_plan_test.cpp::pipeline plan: sizes that no size suits"),
    '{"tensors": [{"name": "l.weight",': run_by("tests/server/test_trainers.py::test_tensors_by_their_handles"),
    "# scopes          token": said,
    "# kustomization.yaml": run_by("tests/kubernetes/test_rendered.py::test_the_kustomization_of_the_document"),
    "DIR/MODEL/VERSION/journal.json": said,
    "receiving --> staged": run_by("tests/server/rollout/push/push_ledger_test.cpp::push ledger: a push from its first byte"),
    "rows are independent: requests may share runs": run_by(
        "tests/python/test_export.py::test_the_package_records_why_rows_are_not_independent", "of the models in export_cases.py"),
    "rows          requests may share runs: proved by": run_by(
        "tests/commands/program_test.cpp::program: inspect, text and JSON, without colour in a pipe", "of the digits example"),
    "weights_peers = ": run_by("tests/server/rollout/push/push_peers_test.cpp::push peers: hosts, ports, schemes"),
    **{line: said for line in (  # FORMAT.md
        "archive_format  ", 'inputs_info_[I].name = "arg0_1";', "ConstantHandle NAME = ", "auto arg0_1 = std::move(inputs[I]);")},
    "client": said,
    'handle = serve.get_app_handle("default")': run_by("tests/long/ray/test_readme.py::test_the_blocks"),
    "sconce_package* package = NULL;": run_by(
        "tests/c_api/c_api_test.cpp::c api: dlpack.h before and after it, and a program in C11", "and by examples/embed.c"),
    "error = sconce_model_begin_update(model, NULL, &update);": run_by(
        "tests/c_api/c_api_test.cpp::c api: dlpack.h before and after it, and a program in C11", "as in_c.c reads from a socket"),
    "cc -std=c11 embed.c -lsconce -o embed": in_file("tests/install/run.sh", "embed.c\" -lsconce -o", "run with the installed library"),
    "include/sconce.h              server, examples": run_by("tests/rules/layering_test.cpp::layering"),
}


@pytest.mark.parametrize("first", sorted({*TEXTS, *OTHERS}))
def test_code_that_is_no_command(first, clone, record_property):
    """Each block is listed: code that COMMAND of documents.py fails to recognise as a command shows up here."""
    known = [begin for begin in OTHERS if first.startswith(begin)]
    assert len(known) == 1, f"{', '.join(TEXTS[first])}: a block of code that OTHERS does not name"
    if first in OTHERS and first not in TEXTS:
        assert any(text.startswith(first) for text in TEXTS), "no document has this block"
        return
    reason = OTHERS[known[0]](clone, first)
    if reason:
        record_property("reduced", reason)
        print(f"{first}: {reason}")


def test_commands_are_found():
    """Forms that a document may write, and forms that are no commands."""
    for text in ("./dev test", "sconce ops", "SCONCE_PRESET=asan ./dev test", "tests/docker/run.sh", "ninja -C build/release x",
                 "PACKAGES=dist tests/docker/run.sh cuda", "build/release/tests/bench_staging", "kubectl apply -f x.yaml",
                 "run.py FOLDER --draws 3", ".venv/bin/python -m pytest tests"):
        assert documents.is_command(text), text
    for text in ("sconce", "tests/", "src/cpu/matmul/gemm/gemm.h", "tests/data/*.cases", "docker/Dockerfile.cpu", "build/opinfo/report.json",
                 "find_package(sconce)", "docker", "--set MODEL.devices=cuda", "SCONCE_CPU_ISA=avx2"):
        assert not documents.is_command(text), text
    assert documents.commands_of_line("$ ninja x && tests/a.py  -b '#1'   # why") == ["ninja x", "tests/a.py -b '#1'"]


def test_what_begins_with_an_interpreter_can_be_run(clone):
    files = subprocess.run(["git", "ls-files", "-z", "*.py", "*.sh", "dev", ".ci/*"], cwd=ROOT, capture_output=True, text=True,
                           check=True).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).exists():
            assert os.access(ROOT / name, os.X_OK) == (ROOT / name).read_bytes().startswith(b"#!"), name
