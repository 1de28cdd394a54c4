"""As much of Ray as the executor uses, in this process: tasks run when their stream is read. Nodes can be lost."""

import sys
import types


class WorkerCrashedError(Exception):
    """As Ray names it."""


class FakeRay(types.ModuleType):
    def __init__(self, cpus=2.0):
        super().__init__("ray")
        self.cpus, self.is_up, self.lost, self.cancelled, self.n_puts = cpus, False, set(), [], 0

    def is_initialized(self):
        return self.is_up

    def init(self, address=None, **options):
        if address == "nowhere:1":
            raise ConnectionError("no such cluster\nand more lines")
        self.is_up, self.options = True, options

    def shutdown(self):
        self.is_up = False

    def cluster_resources(self):
        return {"CPU": self.cpus}

    def put(self, value):
        self.n_puts += 1
        return value

    def get(self, value):
        if isinstance(value, Exception):
            raise value
        return value

    def remote(self, **resources):
        self.resources = resources
        return lambda function: _Remote(self, function)

    def wait(self, streams, timeout=None, fetch_local=True):
        return streams[:1], streams[1:]

    def cancel(self, stream, force=False):
        assert force
        self.cancelled.append(stream.name)
        stream.frames.close()


class _Remote:
    def __init__(self, ray, function, name=""):
        self.ray, self.function, self.name = ray, function, name

    def options(self, name):
        return _Remote(self.ray, self.function, name)

    def remote(self, *arguments):
        return _Stream(self.ray, self.name, self.function(*arguments))


class _Stream:
    def __init__(self, ray, name, frames):
        self.ray, self.name, self.frames = ray, name, frames

    def __next__(self):
        if self.name in self.ray.lost:
            self.ray.lost.discard(self.name)
            return WorkerCrashedError("The worker died\nunexpectedly")
        return next(self.frames)


def installed(monkeypatch, **options) -> FakeRay:
    ray = FakeRay(**options)
    monkeypatch.setitem(sys.modules, "ray", ray)
    return ray
