use super::*;

type Flat = (usize, Option<String>, String, u64);

fn bill(text: &str) -> Vec<Flat> {
    let lines = parse(text, None).unwrap_or_else(|e| panic!("{text:?}: {e:?}"));
    let flat = lines.into_iter().map(|l| {
        (
            l.line,
            l.tenant.map(|t| t.to_string()),
            l.id.to_string(),
            l.units.0,
        )
    });
    flat.collect()
}

fn findings(text: &str) -> Findings {
    parse(text, None).expect_err(text)
}

#[test]
fn csv_and_jsonl_say_the_same() {
    let want = vec![
        (2, None, "a".to_owned(), 37),
        (3, Some("acme".to_owned()), "b".to_owned(), 0),
    ];
    assert_eq!(bill("request_id,units,tenant\na,37,\nb,0,acme\n"), want);
    assert_eq!(
        bill("Tenant, Units ,x,REQUEST_ID\r\n,37,,a\r\nacme,0,,b\r\n"),
        want
    );
    let jsonl = "\n{\"request_id\":\"a\",\"units\":37}\n{\"tenant\":\"acme\",\"units\":\"0\",\"request_id\":\"b\",\"x\":1}";
    assert_eq!(bill(jsonl), want);
    let spaced = "\n{\"Request_ID\":\" a \",\" units \":\"\\t37 \",\"tenant\":null}\n\
                  { \"TENANT\" : \" acme\\n\" , \"units\" : 0 , \"request_id\" : \"b\" }";
    assert_eq!(bill(spaced), want, "names and values are trimmed as CSV's");
}

#[test]
fn quotes_marks_line_ends_and_blank_lines_of_other_programs_are_taken() {
    let want = vec![
        (2, Some("a, \"b\"".to_owned()), "a".to_owned(), 37),
        (5, None, "b".to_owned(), 0),
    ];
    let csv = "\u{feff}\"request_id\",\"units\",\"tenant\"\r\n\"a\",\" 37 \",\"a, \"\"b\"\"\"\r\n\r\n , \t,\r\nb,0\r\n,,,,\r\n";
    assert_eq!(bill(csv), want);
    let jsonl = "\u{feff}\r\n{\"request_id\":\"a\",\"units\":37,\"tenant\":\"a, \\\"b\\\"\"}\r\n\r\n \t\r\n{\"request_id\":\"b\",\"units\":0}";
    assert_eq!(bill(jsonl), want);
}

#[test]
fn other_columns_and_members_are_let_be_also_where_they_stand_twice() {
    let csv = "note,request_id,units,note,,\nx,a,1,\"y\nz\",,\n\"=1\",b,2,,,\n";
    let lines = bill(csv);
    assert_eq!(lines[0], (2, None, "a".to_owned(), 1));
    assert_eq!(
        lines[1],
        (4, None, "b".to_owned(), 2),
        "a cell of two lines counts both"
    );
    let jsonl = r#"{"x":{"units":9},"x":[1],"request_id":"a","units":1,"unit":7}"#;
    assert_eq!(bill(jsonl), [(1, None, "a".to_owned(), 1)]);
}

#[test]
fn a_name_that_is_read_stands_once() {
    for (header, name) in [
        ("request_id,units,units", "units"),
        ("request_id,units, UNITS ", "units"),
        ("Request_Id,units,request_id", "request_id"),
        ("tenant,request_id,units,Tenant", "tenant"),
    ] {
        let found = findings(&format!("\n{header}\na,1,2,3\n"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, 2, "{found:?}");
        let want = format!("the column {name} stands more than once");
        assert!(found[0].1.contains(&want), "{found:?}");
    }
    for (object, name) in [
        (r#"{"request_id":"a","units":1,"units":1}"#, "units"),
        (r#"{"request_id":"a","units":1,"Units":2}"#, "units"),
        (
            r#"{"request_id":"a","request_id":"b","units":1}"#,
            "request_id",
        ),
        (
            r#"{"tenant":"x","request_id":"a","units":1,"tenant":null}"#,
            "tenant",
        ),
    ] {
        let fine = r#"{"request_id":"a","units":1}"#;
        let found = findings(&format!("{fine}\n{object}\n"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, 2, "{found:?}");
        let want = format!("the member {name} stands more than once");
        assert!(found[0].1.contains(&want), "{found:?}");
    }
}

#[test]
fn the_option_names_the_tenant_of_lines_that_name_none() {
    let acme = TenantName::new("acme");
    let lines = parse("request_id,units,tenant\na,1,\nb,1,other\n", Some(&acme)).unwrap();
    let tenants: Vec<_> = lines.into_iter().filter_map(|l| l.tenant).collect();
    assert_eq!(tenants, [acme, TenantName::new("other")]);
}

#[test]
fn units_are_whole_and_believable_or_the_line_is_named() {
    let good = ["0", "37", "007", "1000000000"];
    let bad = [
        "-1",
        "+1",
        "1.5",
        "37.0",
        "1e3",
        "1000000001",
        "99999999999999999999999",
        "12 000",
        "0x10",
        "NaN",
        "٣",
    ];
    for units in good {
        assert_eq!(bill(&format!("request_id,units\na,{units}\n")).len(), 1);
    }
    for units in bad {
        let csv = findings(&format!("request_id,units\na,{units}\n"));
        let jsonl = findings(&format!("{{\"request_id\":\"a\",\"units\":\"{units}\"}}"));
        let want = format!("units is {units:?}, not a whole number from 0 to 1000000000");
        assert_eq!(csv, [(2, want.clone())]);
        assert_eq!(jsonl, [(1, want)]);
    }
    for number in ["-1", "1.5", "37.0", "1e3", "99999999999999999999999"] {
        let found = findings(&format!("{{\"request_id\":\"a\",\"units\":{number}}}"));
        assert!(
            found[0].1.starts_with(&format!("units is {number:?}")),
            "as it is written: {found:?}"
        );
    }
}

#[test]
fn every_line_that_cannot_be_read_is_named() {
    let text =
        "request_id,units\na b,1\nok,-1\nok,1.5\nok,2000000000\nok,\nok\nok,1,000\n,1\nfine,1,,\n";
    let found = findings(text);
    let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 3, 4, 5, 6, 7, 8, 9], "{found:?}");
    assert!(found[6].1.contains("3 columns"), "{found:?}");
    let json = "{\"request_id\":\"a\",\"units\":1}\n{oops\n[1]\n{\"units\":1e3,\"request_id\":\"x\"}\n\
                {\"units\":true,\"request_id\":\"x\"}\n{\"units\":1,\"request_id\":[\"x\"]}\n{\"units\":1}\n\
                {\"request_id\":\"x\",\"units\":1} {}\n";
    let found = findings(json);
    let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 3, 4, 5, 6, 7, 8], "{found:?}");
    assert!(found[0].1.ends_with("at column 2"), "{found:?}");
}

#[test]
fn a_file_without_the_columns_is_no_bill() {
    for text in [
        "",
        "\n\n",
        "a,1\nb,2\n",
        "request_id;units\na;1\n",
        "request_id\tunits\na\t1\n",
        "[{\"request_id\":\"a\",\"units\":1}]",
    ] {
        assert_eq!(findings(text).len(), 1, "{text:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_named_with_their_line() {
    assert_eq!(text(b"a\nb\xff\n").unwrap_err()[0].0, 2);
    assert_eq!(text("ä\n".as_bytes()), Ok("ä\n"));
}
