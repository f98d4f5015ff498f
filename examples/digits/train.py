"""Trains the digits example and writes digits.pt2.

    python -m venv .venv && .venv/bin/pip install sconce torch==2.15.0 scikit-learn
    .venv/bin/python examples/digits/train.py

A small convolutional network on scikit-learn's 8x8 digits (1,797 images, a quarter held out). Input: images [B, 8, 8],
float32, 0 (paper) to 16 (ink). Result: {"class": int64 [B], "probabilities": float32 [B, 10]}.
"""
import argparse
import importlib.util
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--sample", type=int, default=3, help="held-out image to print")
    parser.add_argument("--out", default=str(here / "digits.pt2"))
    return parser.parse_args()


args = arguments() if __name__ == "__main__" else None
if not importlib.util.find_spec("torch"):
    sys.exit("train.py: this Python has no torch: pip install torch==2.15.0 scikit-learn")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402
from torch import nn  # noqa: E402


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(32 * 2 * 2, 10)

    def forward(self, images):
        features = self.features(images.unsqueeze(1) / 16.0).flatten(1)
        probabilities = torch.softmax(self.classifier(features), dim=1)
        return {"class": probabilities.argmax(dim=1), "probabilities": probabilities}


def train(seed, epochs):
    torch.manual_seed(seed)
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8).astype(np.float32)
    x_train, x_test, y_train, y_test = train_test_split(images, labels, test_size=0.25, random_state=seed, stratify=labels)
    x_train, y_train = torch.from_numpy(x_train), torch.from_numpy(y_train)
    model = Digits()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        order = torch.randperm(len(x_train))
        for batch in order.split(64):
            # Shift each batch by up to one pixel: digits are where the hand put them.
            dy, dx = torch.randint(-1, 2, (2,)).tolist()
            shifted = torch.roll(x_train[batch], (dy, dx), (1, 2))
            loss = nn.functional.nll_loss(torch.log(model(shifted)["probabilities"] + 1e-9), y_train[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        right = (model(torch.from_numpy(x_test))["class"].numpy() == y_test).mean()
    print(f"accuracy on {len(x_test)} held-out images: {100 * right:.2f} %")
    return model, x_test, y_test


def main():
    model, x_test, y_test = train(args.seed, args.epochs)

    import sconce

    # The compiler chooses code for small batches of this convolution and takes 15 at most.
    print(sconce.export(model, torch.from_numpy(x_test[:4]), args.out, batch=(1, 15), threads=1))
    sample = x_test[args.sample]
    for row in sample:
        print("".join(" .:-=+*#%@"[int(v * 9 / 16)] * 2 for v in row))
    print("label", y_test[args.sample], "image", sample.astype(int).tolist())


if __name__ == "__main__":
    main()
