# SPDX-License-Identifier: GPL-2.0
"""A network of two layers that reads handwritten digits, in plain numpy.

All parameters are views of one vector, and so are all gradients: one bucket
carries a whole step.
"""
import numpy

PIXELS, HIDDEN, DIGITS = 64, 64, 10
SHAPES = ((PIXELS, HIDDEN), (HIDDEN,), (HIDDEN, DIGITS), (DIGITS,))
COUNT = sum(int(numpy.prod(shape)) for shape in SHAPES)


def views(vector):
    """The layers' weights and biases inside a vector of COUNT floats."""
    out, start = [], 0
    for shape in SHAPES:
        end = start + int(numpy.prod(shape))
        out.append(vector[start:end].reshape(shape))
        start = end
    return out


def initial(seed):
    """The same parameters on every rank."""
    rng = numpy.random.default_rng(seed)
    vector = numpy.zeros(COUNT, numpy.float32)
    for view in views(vector):
        if view.ndim == 2:
            scale = 1 / numpy.sqrt(view.shape[0])
            view[:] = rng.standard_normal(view.shape, numpy.float32) * scale
    return vector


def forward(vector, images):
    """Activations of the hidden layer, and the logarithms of the digits'
    probabilities."""
    w1, b1, w2, b2 = views(vector)
    hidden = numpy.tanh(images @ w1 + b1)
    scores = hidden @ w2 + b2
    scores -= scores.max(axis=1, keepdims=True)
    return hidden, scores - numpy.log(
        numpy.exp(scores).sum(axis=1, keepdims=True))


def gradient(vector, images, labels, out):
    """Writes the mean gradient over the batch to @out; returns the loss."""
    _, _, w2, _ = views(vector)
    dw1, db1, dw2, db2 = views(out)
    hidden, logs = forward(vector, images)
    rows = numpy.arange(len(labels))
    error = numpy.exp(logs)
    error[rows, labels] -= 1
    error /= len(labels)
    dw2[:] = hidden.T @ error
    db2[:] = error.sum(axis=0)
    error = error @ w2.T * (1 - hidden * hidden)
    dw1[:] = images.T @ error
    db1[:] = error.sum(axis=0)
    return -logs[rows, labels].mean()


def accuracy(vector, images, labels):
    """The share of images that are read right."""
    _, logs = forward(vector, images)
    return float((logs.argmax(axis=1) == labels).mean())


class Momentum:
    """Gradient descent with momentum: elementwise, so the same gradient gives
    the same parameters, bit for bit, on every rank."""

    def __init__(self, rate, keep=0.9):
        self.rate = numpy.float32(rate)
        self.keep = numpy.float32(keep)
        self.velocity = numpy.zeros(COUNT, numpy.float32)

    def step(self, vector, grad):
        self.velocity *= self.keep
        self.velocity += grad
        vector -= self.rate * self.velocity
