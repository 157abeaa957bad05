"""Great Expectations' Data Docs of evaluations: an index, a page of each suite and a page of each validation."""

import re
from collections.abc import Sequence
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
    """Write the site, or add to one that is there: earlier validations stay, each suite is as it was evaluated last.

    Returns:
        The page to open.

    Raises:
        ConfigError: the folder cannot be written.
    """
    context = gx.get_context(mode="ephemeral")
    site: Any = {
        "class_name": "SiteBuilder",
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder.absolute())},
        "show_how_to_buttons": False,  # they explain Great Expectations' own projects; its TypedDict lacks the key
    }
    context.add_data_docs_site(_SITE, site)
    for name in dict.fromkeys(validation.suite for validation in validations):
        newest = [validation for validation in validations if validation.suite == name][-1]
        configs = [result.expectation_config for result in newest.told.results]
        context.suites.add(gx.ExpectationSuite(name, expectations=[config.to_domain_obj() for config in configs]))
    for validation in validations:
        run = RunIdentifier(run_name=validation.scope.value, run_time=validation.told.meta["run_id"].run_time)
        batch = _NO_FILE_NAME.sub("-", validation.range)
        key = ValidationResultIdentifier(ExpectationSuiteIdentifier(name=validation.suite), run, batch)
        context.validation_results_store.store_validation_results(validation.told, key)
    try:
        context.build_data_docs(site_names=[_SITE])
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror}", hint="name another folder") from error
    return folder / "index.html"
