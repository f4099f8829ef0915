"""A project in miniature for every test, copied from ones that are made once."""

import pytest
from research_project import Project


@pytest.fixture(scope="session")
def bare(tmp_path_factory):
    return Project(tmp_path_factory.mktemp("bare")).make()


@pytest.fixture(scope="session")
def begun(bare, tmp_path_factory):
    project = bare.copy(tmp_path_factory.mktemp("begun"))
    project.start()
    return project


@pytest.fixture
def fresh(bare, tmp_path):
    """A project without a research folder."""
    return bare.copy(tmp_path)


@pytest.fixture
def project(begun, tmp_path):
    """A project with a research folder."""
    return begun.copy(tmp_path)
