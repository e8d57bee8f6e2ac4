"""What docs/ says of environments is so."""

import json
import re
from pathlib import Path

import numpy as np

from opentinker import registry
from opentinker.envs.descriptor import EnvDescriptor

DOCS = Path(__file__).parents[3] / 'docs'


def test_the_published_schema_is_that_of_the_descriptor():
    published = json.loads((DOCS / 'environment.schema.json').read_text())
    assert published == EnvDescriptor.model_json_schema(), 'run docs/make_schema.py'


def test_the_environment_in_the_documents_runs_and_its_carts_meet():
    (code,) = re.findall(r'```python\n(.*?)```', (DOCS / 'environments.md').read_text(), re.DOTALL)
    exec(compile(code, 'environments.md', 'exec'), {'__name__': 'example'})
    env = registry.get('env', 'carts')(num_envs=3, seed=0, rail=3.0)
    seen = env.reset(seed=0)['cart']['observation']
    for _ in range(50):
        toward = np.clip(10 * (seen[..., 1:] - seen[..., :1]), -1, 1)
        step = env.step({'cart': toward * 0.5})
        seen = step.observation['cart']['observation']
        if step.ended.size:
            break
    assert step.terminated[step.ended].all()
    assert step.episode['success'].all()
