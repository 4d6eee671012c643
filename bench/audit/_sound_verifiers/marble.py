"""The first levels of marble-v1, whose taskset is endless and takes a while for each level."""

from marble_v1.taskset import MarbleConfig, MarbleTaskset

levels = MarbleTaskset(MarbleConfig()).take(30)
