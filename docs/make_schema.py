"""Writes docs/environment.schema.json, the JSON schema of environment descriptors."""

import json
from pathlib import Path

from opentinker.envs.descriptor import EnvDescriptor

if __name__ == '__main__':
    schema = json.dumps(EnvDescriptor.model_json_schema(), indent=2)
    Path(__file__).with_name('environment.schema.json').write_text(schema + '\n')
