"""Writes Great Expectations' Data Docs of evaluations: an index, a page per suite and a page per validation."""

import re
import shutil
import tempfile
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

import great_expectations as gx
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.types.resource_identifiers import (
    ExpectationSuiteIdentifier,
    ValidationResultIdentifier,
)

from dmdelta.errors import ConfigError
from dmdelta.quality.results import Validation

_SITE = "dmdelta"
_NO_FILE_NAME = re.compile(r"[^\w.-]+")


def write_data_docs(folder: Path, validations: Sequence[Validation]) -> Path:
    """Write the site. Removes nothing from the folder: pages of an earlier site stay, without a link to them.

    Returns:
        The index page.

    Raises:
        ConfigError: the folder cannot be written.
    """
    # Great Expectations empties its target folder.
    with tempfile.TemporaryDirectory() as built:
        _build(Path(built), validations)
        try:
            shutil.copytree(built, folder, dirs_exist_ok=True)
        except OSError as error:
            reason = error.strerror or "a page cannot be copied"
            raise ConfigError(f"{folder} cannot be written: {reason}", hint="use another folder") from error
    return folder / "index.html"


def _build(folder: Path, validations: Sequence[Validation]) -> None:
    context = gx.get_context(mode="ephemeral")
    site: Any = {
        "class_name": "SiteBuilder",
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder)},
        "show_how_to_buttons": False,  # they are about Great Expectations projects; its TypedDict lacks the key
    }
    context.add_data_docs_site(_SITE, site)
    for name in dict.fromkeys(validation.suite for validation in validations):
        newest = [validation for validation in validations if validation.suite == name][-1]
        # Copies: the expectations belong to the suite that was evaluated.
        expected = [copy(result.expectation_config.to_domain_obj()) for result in newest.details.results]
        context.suites.add(gx.ExpectationSuite(name, expectations=expected))
    for validation in validations:
        run = RunIdentifier(run_name=validation.scope.value, run_time=validation.details.meta["run_id"].run_time)
        batch = _NO_FILE_NAME.sub("-", validation.range)
        key = ValidationResultIdentifier(ExpectationSuiteIdentifier(name=validation.suite), run, batch)
        context.validation_results_store.store_validation_results(validation.details, key)
    context.build_data_docs(site_names=[_SITE])
