//! What is found wrong with tenants and their keys.

use super::*;

#[test]
fn a_secret_that_cannot_be_had_is_named_and_never_shown() {
    let wanted = "give a secret as { env = \"NAME\" } or { file = \"PATH\" }";
    pool(
        "api_key = \"sk-oops\"\n",
        &[&format!("5:11: pool.api_key: {wanted}")],
    );
    pool(
        "api_key = {}\n",
        &[&format!("5:11: pool.api_key: {wanted}")],
    );
    pool(
        "api_key = { env = \"A\", file = \"b\" }\n",
        &[
            &format!("5:11: pool.api_key: {wanted}"),
            "5:31: pool.api_key.file = \"b\": cannot read FOLDER/b: No such file or directory (os error 2)",
        ],
    );
    pool(
        "api_key = { env = \"sk-oops\" }\n",
        &["5:19: pool.api_key.env: give the name of an environment variable"],
    );
    pool(
        "api_key = { env = \"UNSET\" }\n",
        &[
            "5:19: pool.api_key.env = \"UNSET\": the environment has no such variable, or not as UTF-8: set it",
        ],
    );
    pool(
        "api_key = { env = \"EMPTY\" }\n",
        &["5:19: pool.api_key.env = \"EMPTY\": it is empty: put the secret there"],
    );
    pool(
        "api_key = { env = \"TWO_LINES\" }\n",
        &[
            "5:19: pool.api_key.env = \"TWO_LINES\": it holds more than one line of plain ASCII: put only the secret there",
        ],
    );
    check(
        "[ledger]\nurl = \"mysql://u:sk-oops@h/d\"\n",
        &[
            "2:7: ledger.url: give \"sqlite:PATH\" or \"postgres://USER@HOST/DATABASE\", as it is or as { env = \"NAME\" }",
        ],
    );
    check(
        "[ledger]\nurl = \"postgres://u:sk-oops@h:sk-oops/d\"\n",
        &[
            "2:7: ledger.url: its port is not valid; give \"sqlite:PATH\" or \"postgres://USER@HOST/DATABASE\", as it is or as { env = \"NAME\" }",
        ],
    );
    check(
        "[cluster]\nredis = \"http://:sk-oops@h\"\n",
        &[
            "1:1: cluster.node is missing: give this gateway's name among the others",
            "2:9: cluster.redis: give a URL as \"redis://127.0.0.1:6379\"",
        ],
    );
}

#[test]
fn a_key_opens_one_tenant() {
    let key = "{ sha256 = \"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\" }";
    check(
        &format!(
            "[[tenant]]\nname = \"a\"\nkeys = [{key}]\n[[tenant]]\nname = \"a\"\nkeys = [{key}, {{ env = \"K\" }}, {{ env = \"K\" }}]\n"
        ),
        &[
            "5:8: tenant.name = \"a\": it repeats line 2, but each tenant has its own name",
            "6:9: tenant.keys: it repeats line 3, but a key opens one tenant, once",
            "6:105: tenant.keys: it repeats line 6, but a key opens one tenant, once",
        ],
    );
    check(
        "[[tenant]]\nname = \"a\"\nkeys = [{ sha256 = \"sk-oops\" }, \"sk-oops\"]\n",
        &[
            "3:20: tenant.keys.sha256: give the SHA-256 of the key as 64 hex digits (streamgate key new prints it)",
            "3:33: tenant.keys: give a key as { sha256 = \"64 hex digits\" }, { env = \"NAME\" } or { file = \"PATH\" }",
        ],
    );
}

#[test]
fn one_tenant_at_most_is_anonymous() {
    check(
        "[[tenant]]\nname = \"a\"\nanonymous = true\n[[tenant]]\nname = \"b\"\nanonymous = true\n",
        &["6:13: tenant.anonymous = true: it repeats line 3, but one tenant at most is anonymous"],
    );
    check(
        "[[tenant]]\nanonymous = true\nbudget = { units = 1 }\nmodels = [\"*\", \"m\"]\n",
        &[
            "1:1: tenant.name is missing: give the tenant's name",
            "3:10: tenant.budget.period is missing: give \"hour\", \"day\", \"month\" or \"total\"",
            "4:10: tenant.models = a list: \"*\" is every model: let it stand alone, or name the models",
        ],
    );
}
