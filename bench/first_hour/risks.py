"""risks.py -- what kernels for compute capability 10.x rely on that only a GPU can confirm: of each risk the instances
that have it, what speaks for it, and which instance does without. The step `verify` of first_hour.py runs every
instance, and names the risks of one that fails.
"""
import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Risk:
    name: str
    says: str
    # Whether an instance of this plan (dualgemm_bench --instances) has the risk.
    has: typing.Callable[[dict], bool]
    # The instance to take in place of one: both without what follows "_" but for "_one".
    fallback: dict


RISKS = [
    Risk("middle of an atom",
         "an mma takes scale factors from the middle of an atom, in a pair of CTAs also with 192 columns. No document "
         "describes it; CUTLASS begins two columns further in, too, for every other tile of 64 and of 192 columns",
         lambda plan: plan["mma"]["columns"] % 128 == 64,
         {"m64n128k256": "m128n128k256", "m64n128k256s4": "m128n128k256", "m64n128k256g": "m128n128k256g",
          "m128n64k256": "m128n128k256", "m128n64k256s2": "m128n128k256", "m128n64k256s4": "m128n128k256",
          "m256n64k256": "m256n128k256", "m256n192k256": "m256n128k256",
          "m64n128k256_one": "m128n128k256_one", "m64n128k256s4_one": "m128n128k256_one",
          "m64n128k256g_one": "m128n256k256og_one", "m256n192k256_one": "m256n128k256_one"}),
    Risk("windows in turn",
         "scale factors pass through windows of tensor memory that are filled again after a commit: no document says "
         "that an mma has read its factors by then",
         lambda plan: plan["tmem"]["windows"] > 0 and not plan["tmem"]["resident_scales"],
         {"m256n128k256o": "m256n128k256", "m256n128k256og": "m128n128k256g", "m256n192k256": "m256n128k256",
          "m128n256k256o_one": "m128n128k256_one", "m128n256k256og_one": "m64n128k256g_one",
          "m256n192k256_one": "m256n128k256_one", "m256n256k256o_one": "m256n128k256_one",
          "m256n256k256og_one": "m64n128k256g_one"}),
    Risk("pairs in a cluster of four",
         "two pairs of CTAs share a cluster, and a copy or a commit of a pair goes to the mask 3 << 2 * slice; no "
         "public kernel was found that does so",
         lambda plan: plan["mma"]["cta_group"] == 2 and plan["tile"]["split_k"] == 2,
         {"m256n128k256s2": "m256n128k256", "m256n256k256s2_one": "m256n128k256_one"}),
    Risk("A in the collector",
         "two mma on different accumulators execute in the order of issue, and the second takes A from the collector; "
         "the order is not documented, and public kernels rely on it",
         lambda plan: plan["mma"]["keep_a"],
         {"m128n64k256": "m128n128k256", "m128n64k256s2": "m128n128k256", "m128n64k256s4": "m128n128k256",
          "m256n64k256": "m256n128k256"}),
    Risk("pairs of CTAs",
         "bit 24 of an address in shared memory names the even CTA of a pair; it is not documented, and every public "
         "kernel for pairs relies on it",
         lambda plan: plan["mma"]["cta_group"] == 2,
         {"m256n64k256": "m128n128k256", "m256n128k256": "m128n128k256", "m256n128k256o": "m128n128k256",
          "m256n128k256s2": "m128n128k256", "m256n128k256og": "m128n128k256g", "m256n192k256": "m128n128k256",
          "m256n128k256_one": "m128n128k256_one", "m256n192k256_one": "m128n128k256_one",
          "m256n256k256o_one": "m128n128k256_one", "m256n256k256s2_one": "m128n128k256_one",
          "m256n256k256og_one": "m64n128k256g_one"})]


def stem(name):
    """The name of an instance without its types: "m256n192k256_one_general_fp8" -> "m256n192k256_one"."""
    parts = name.split("_")
    return "_".join(parts[:2] if parts[1:2] == ["one"] else parts[:1])


def risks_of(instance):
    """Those of an instance for 10.x, as `dualgemm_bench --instances` prints it."""
    if instance["plan"]["arch"] != "sm_100f": return []
    return [risk for risk in RISKS if risk.has(instance["plan"])]


def fallback_of(risk, name):
    """The instance, by its name, that writes the same C without this risk."""
    return risk.fallback[stem(name)] + name[len(stem(name)):]


def advice(instance, name):
    """Sentences about an instance that failed: what may be the reason, and what to launch in its place."""
    return [f"{risk.name}: {risk.says}. {fallback_of(risk, name)} does without it" for risk in risks_of(instance)]


AVOID = ("To keep an instance from being chosen: name another one in `instance_id` of the launch "
         "(dualgemm_select_instance returns ids), or let dualgemm-tune write a file for the shapes in use: it leaves "
         "out an instance whose C differs from that of the model's choice. No option of the library excludes an "
         "instance from every choice.")
