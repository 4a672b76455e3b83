#[test]
fn every_rule_names_its_section_of_the_rule_book_and_itself() {
    let mut names = std::collections::BTreeSet::new();
    for rule in super::rules::RULES {
        assert!(!rule.section.is_empty(), "{} has no section", rule.name);
        assert!(names.insert(rule.name), "{} stands twice", rule.name);
    }
}
