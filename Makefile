PYTHON ?= python3
# A sourced ROS 2 has an rclpy of its own, which must not meet the wheels': it gets its own venv
VENV := .venv$(addprefix -,$(ROS_DISTRO))
ifdef ROS_DISTRO
# The libraries of our messages; the wheels find theirs by themselves
export LD_LIBRARY_PATH := $(CURDIR)/$(VENV)/lib:$(LD_LIBRARY_PATH)
endif
BIN := $(VENV)/bin
INPUTS := setup.py setup.cfg pyproject.toml constraints.txt package.xml CMakeLists.txt \
	$(wildcard msg/*.msg srv/*.srv action/*.action)

export HOME ?= $(shell getent passwd $$(id -u) | cut -d: -f6)
# These reach the build environment too, which `pip install -c` does not
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_BUILD_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint clean system

help: ## Show this list
	@echo 'make TARGET [PYTHON=python3.12]'
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: $(VENV)/.installed ## Watch four arms learn to reach in a ROS 2 graph
	@$(BIN)/opentinker demo

test: $(VENV)/.installed ## Run the tests, but for the slow ones
	@$(BIN)/python -m pytest -m 'not slow'

test-all: $(VENV)/.installed ## Run all tests
	@$(BIN)/python -m pytest

lint: $(VENV)/.installed ## Check style, types and which module imports which
	@echo '== ruff'; $(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
	@echo '== mypy'; $(BIN)/mypy
	@echo '== import-linter'; $(BIN)/lint-imports --no-logo

clean: ## Remove what make built, the venv included; runs/ stays
	@rm -rf .venv .venv-* build *.egg-info .*_cache .hypothesis MUJOCO_LOG.TXT
	@find . -name __pycache__ -prune -exec rm -rf {} +

system:
	@.ci/system-packages $(PYTHON)

$(VENV)/.installed: $(INPUTS) | system
	@echo '== Making $(VENV) with $(PYTHON)'
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@echo '== Installing the pinned libraries and building the ROS messages (minutes at first)'
	@$(BIN)/python -m pip install -qq --editable '.[test,lint,video]'
	@touch $@
