"""Small models of timm and transformers with random weights, whether their rows are independent, and whether that is proved."""
import time
import warnings

import torch

import pure  # noqa: F401  makes sconce importable

from sconce import _rows

PICTURES = {  # timm: name -> (size of the picture, how it is made smaller)
    "resnet10t": (32, {}), "legacy_seresnet18": (32, {}), "skresnet18": (32, {}), "mobilenetv3_small_050": (32, {}),
    "mobilenetv2_035": (32, {}), "lcnet_035": (32, {}), "regnety_002": (32, {}), "ghostnet_050": (32, {}), "repvgg_a0": (32, {}),
    "convnext_atto": (32, {"depths": (1, 1, 1, 1)}), "convnextv2_atto": (32, {"depths": (1, 1, 1, 1)}), "vgg11": (32, {}),
    "vit_tiny_patch16_224": (32, {"img_size": 32, "depth": 2}), "deit_tiny_distilled_patch16_224": (32, {"img_size": 32, "depth": 2}),
    "beit_base_patch16_224": (32, {"img_size": 32, "depth": 1}), "eva02_tiny_patch14_224": (28, {"img_size": 28, "depth": 2}),
    "swin_tiny_patch4_window7_224": (56, {"img_size": 56, "depths": (1, 2)}), "mixer_s32_224": (32, {"img_size": 32}),
    "gmlp_s16_224": (32, {"img_size": 32}), "poolformer_s12": (32, {}),
    "cait_xxs24_224": (32, {"img_size": 32, "depth": 2}), "xcit_nano_12_p16_224": (32, {"img_size": 32, "depth": 2}),
    "efficientnet_lite0": (32, {}), "pvt_v2_b0": (32, {"depths": (1, 1, 1, 1)}), "mobilevit_xxs": (64, {}),
    "edgenext_xx_small": (32, {}), "dla34": (32, {}), "levit_128s": (64, {"img_size": 64}), "sequencer2d_s": (32, {"img_size": 32, "layers": (1, 1, 1, 1)}),
    "davit_tiny": (64, {"depths": (1, 1, 1, 1)})}
TOKENS = {  # transformers: type of the model -> more of its configuration
    name: {} for name in (
        "bert", "roberta", "distilbert", "albert", "electra", "mpnet", "xlnet", "gpt2", "gpt_neo", "gptj", "gpt_neox", "opt", "llama", "mistral",
        "qwen2", "qwen3", "gemma", "gemma2", "phi", "bloom", "falcon", "mixtral", "qwen2_moe", "fnet", "squeezebert", "mobilebert", "layoutlm",
        "nystromformer", "roformer", "deberta-v2", "mamba", "olmo", "stablelm", "cohere", "t5", "bart", "switch_transformers")}
SMALL = {"hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "embedding_size": 32, "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2,
         "encoder_layers": 1, "decoder_layers": 1, "num_attention_heads": 2, "n_head": 2, "n_heads": 2, "num_heads": 2, "encoder_attention_heads": 2,
         "decoder_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 64, "hidden_dim": 64, "ffn_dim": 64, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
         "d_ff": 64, "d_inner": 64, "n_inner": 64, "vocab_size": 99, "head_dim": 16, "max_position_embeddings": 64, "n_positions": 64, "rotary_dim": 8,
         "num_local_experts": 4, "num_experts": 4, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "word_embed_proj_dim": 32, "d_kv": 16,
         "pad_token_id": 0, "q_groups": 2, "k_groups": 2, "v_groups": 2, "post_attention_groups": 1, "intermediate_groups": 2, "output_groups": 2,
         "attention_types": [[["global", "local"], 1]], "state_size": 8, "use_cache": False, "expert_capacity": 3}


class Tensors(torch.nn.Module):
    """The first result of a model of transformers."""

    def __init__(self, model, decoder):
        super().__init__()
        self.model, self.decoder = model, decoder

    def forward(self, ids, mask):
        more = {"decoder_input_ids": ids, "use_cache": False} if self.decoder else {}
        return self.model(input_ids=ids, attention_mask=mask, return_dict=False, **more)[0]


def picture(name):
    import timm
    size, more = PICTURES[name]
    model = timm.create_model(name, pretrained=False, num_classes=10, **more)
    return model, lambda rows, scale: (torch.randn(rows, 3, size, size, dtype=torch.float64) * scale,)


def tokens(name, classifier=False):
    import transformers
    # Some types name the same setting differently, so each gets what its own configuration knows.
    known = transformers.AutoConfig.for_model(name).to_dict()
    config = transformers.AutoConfig.for_model(name, **{**{key: value for key, value in SMALL.items() if key in known}, **TOKENS[name]})
    maker = transformers.AutoModelForSequenceClassification if classifier else transformers.AutoModel
    decoder = getattr(config, "is_encoder_decoder", False) and not classifier
    model = Tensors(maker.from_config(config), decoder)

    def inputs(rows, scale):
        ids = torch.randint(1, 99, (rows, 12))
        mask = torch.ones_like(ids)
        for row in range(rows):  # rows of other lengths, padded
            mask[row, 12 - int(torch.randint(0, 6, ())):] = 0
        return ids * mask, mask
    return model, inputs


CASES = {**{f"timm {name}": lambda name=name: picture(name) for name in PICTURES}, **{f"transformers {name}": lambda name=name: tokens(name) for name in TOKENS},
         **{f"transformers {name} classifier": lambda name=name: tokens(name, True) for name in ("gpt2", "llama", "bert")}}


def independent(model, inputs, tolerance):
    """In truth: "" or how far a row's answer is off."""
    torch.manual_seed(1)
    one = inputs(1, 1)
    with torch.no_grad():
        alone = model(*one)
        for scale in (1, 1, 30):
            for before, after in ((0, 1), (2, 2), (7, 9)):
                a, b = inputs(before, scale), inputs(after, scale)
                got = model(*(torch.cat(three) for three in zip(a, one, b)))[before:before + 1]
                if got.shape != alone.shape:
                    return f"shape {list(got.shape)}"
                off = float((got - alone).abs().max() / (alone.abs().max() + 1e-12))
                if not off < tolerance:
                    return f"off by {off:.2g} beside {before + after} rows"
    return ""


def exported(model, given):
    dim = {0: torch.export.Dim("batch", min=1, max=64)}
    try:
        return torch.export.export(model, given, dynamic_shapes=tuple(dim for _ in given), strict=False)
    except Exception:  # noqa: BLE001  some fix relations that a named dimension does not allow
        return torch.export.export(model, given, dynamic_shapes=tuple({0: torch.export.Dim.AUTO} for _ in given), strict=False)


def by_source(name, sconce):
    """Why the program `sconce` finds no proof in the source that PyTorch generates for the model; empty: it finds one."""
    from draw_row_models import proof_of
    from make_row_sources import compact, generated
    torch.manual_seed(0)
    model, inputs = CASES[name]()
    given = tuple(one.float() if one.is_floating_point() else one for one in inputs(3, 1))
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            texts = generated(exported(model.eval(), given), {})
    except Exception as error:  # noqa: BLE001  torch may refuse in any way
        return f"not generated: {type(error).__name__}: {str(error).splitlines()[0][:150] if str(error) else ''}"
    proof = proof_of(sconce, [compact(texts)])  # the kernels come first, as in compiled packages
    return "" if proof["independent"] else proof["reason"]


def judged(name):
    torch.manual_seed(0)
    model, inputs = CASES[name]()
    model = model.eval()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            model = model.double()
            truth = independent(model, inputs, 1e-6)
        except RuntimeError:
            # Experts: grouped products exist in single precision only, and a router's weights are not to be converted.
            model, inputs = CASES[name]()
            model = model.eval()
            truth = independent(model, inputs, 1e-3)
        given = inputs(3, 1)
        with _rows.traces.of_functions(torch):
            program = exported(model, given)
        start = time.monotonic()
        proof = _rows.prove(torch, program)
    return {"model": name, "independent": not truth, "truth": truth, "proved": bool(proof), "proof": str(proof), "seconds": round(time.monotonic() - start, 1)}
