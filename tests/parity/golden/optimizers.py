"""The optimizers of the goldens: torch.optim's single-tensor ones, and LAMB, which PyTorch lacks."""
import torch


class Lamb(torch.optim.Optimizer):
    """LAMB: You et al. 2019, arXiv 1904.00962, algorithm 2, with phi the identity and Adam's bias correction.

        m = beta1 m + (1 - beta1) g          v = beta2 v + (1 - beta2) g^2
        u = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay p
        p = p - lr r u,    r = |p| / |u| with 2-norms over one parameter tensor; 1 where either norm is 0

    The ratio r applies to every parameter, also to those without weight decay. Gradients are not clipped here.
    """

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state.update(step=0, exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
                state["step"] += 1
                m, v, t = state["exp_avg"], state["exp_avg_sq"], state["step"]
                m.mul_(beta1).add_((1 - beta1) * p.grad)
                v.mul_(beta2).add_((1 - beta2) * p.grad * p.grad)
                update = (m / (1 - beta1**t)) / ((v / (1 - beta2**t)).sqrt() + group["eps"]) + group["weight_decay"] * p
                weight_norm, update_norm = p.norm().item(), update.norm().item()
                state["trust"] = weight_norm / update_norm if weight_norm > 0 and update_norm > 0 else 1.0
                p.sub_(group["lr"] * state["trust"] * update)


def make_optimizer(spec, groups):
    """spec: name and hyperparameters; groups: parameter groups, each with its own lr and weight_decay."""
    if spec["name"] == "sgd":
        return torch.optim.SGD(groups, momentum=spec.get("momentum", 0.0), nesterov=spec.get("nesterov", False),
                               foreach=False, fused=False)
    betas = (spec["beta1"], spec["beta2"])
    if spec["name"] == "lamb":
        return Lamb(groups, lr=spec["lr"], betas=betas, eps=spec["eps"])
    adam = torch.optim.Adam if spec["name"] == "adam" else torch.optim.AdamW
    return adam(groups, betas=betas, eps=spec["eps"], foreach=False, fused=False)
