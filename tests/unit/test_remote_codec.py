"""Values that travel, and those that do not."""

from typing import NamedTuple

import pytest

from mngr.remote.codec import Decoder, Encoder
from mngr.remote.site import sent
from mngr.settings.layers import Settings
from mngr.settings.schema import Layer


class Unknown(NamedTuple):
    value: int = 0


def test_the_settings_that_are_sent_arrive():
    layers = sent(Settings([Layer("here", {("tmux", "session_prefix"): "x-"})]))
    encoder = Encoder()
    assert Decoder(bytes(encoder.body)).decode(encoder.encode(layers)) == layers
    assert layers["tmux.session_prefix"] == "x-"


def test_a_record_of_another_module_is_refused_before_it_is_sent():
    with pytest.raises(TypeError, match=r"`.*Unknown` is not a class that travels"):
        Encoder().encode([Unknown()])
