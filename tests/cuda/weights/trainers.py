"""A trainer hands over memory that it shares: this process, in each form that trainers have."""
import functools

import torch
import trainer_forms as forms
from net import same
from served import Clients, Server, until


def shared_memory(check, net, device):
    torch.multiprocessing.set_sharing_strategy("file_system")
    cuda = device == "cuda"
    pushes = {"SGLang's, a list of tensors": forms.push_sglang, "SGLang's, a flat bucket": forms.push_sglang_bucket}
    if cuda:
        pushes |= {"vLLM's, in 4 requests": forms.push_vllm, "CUDA IPC handles": functools.partial(forms.push_own, model="net")}
    else:
        check.skip("vLLM's form and CUDA IPC handles")
    with Server(net.package, "--set", "net.replicas=2") as server:
        def post(path, body):
            return server.admin("POST", path, body)
        scales = {1: 1.0}
        with Clients(server) as clients:
            for turn, (form, push) in enumerate(pushes.items()):
                scale = 2 + turn
                named = [(name, (value * scale).to(device)) for name, value in net.module.state_dict().items()]
                if cuda:
                    torch.cuda.synchronize()
                before = torch.cuda.memory_allocated() if cuda else 0
                push(post, named, f"turn-{turn}")
                for _, tensor in named:
                    tensor.fill_(float("nan"))  # the server's set must not depend on this memory any more
                if cuda:
                    torch.cuda.synchronize()
                active = server.state("active")
                scales[active["generation"]] = scale
                check(active["label"] == f"turn-{turn}" and same(server.infer()[0], net.expected(scale)),
                      f"{form}: its weights answer under its version", active)
                if cuda:
                    def grown(before=before):
                        torch.cuda.ipc_collect()
                        return torch.cuda.memory_allocated() - before
                    check(until(lambda grown=grown: grown() <= 0, 5), f"{form}: the trainer has its memory back", grown())
                there = clients.count
                until(lambda there=there: clients.count > there + 30 or clients.failures, 30)
        expected = {weight_version: net.expected(scale) for weight_version, scale in scales.items()}
        wrong = clients.wrong(lambda _, weight_version: expected[weight_version])
        check(not clients.failures and wrong == 0, f"{clients.count} answers meanwhile are those of their weight version",
              (clients.failures[:3], wrong))
        wrong_shape = {"serialized_named_tensors": [forms.dumps([("b.bias", torch.zeros(3, device=device))])]}
        told = server.admin("POST", "/update_weights_from_tensor", wrong_shape, status=400)
        check("expected shape" in str(told), "a wrong shape is refused", told)


CHECKS = (shared_memory,)
