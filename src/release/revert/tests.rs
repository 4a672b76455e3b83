use super::*;

fn sha(digit: char) -> Sha {
    digit.to_string().repeat(40).parse().unwrap()
}

fn between(digit: char, subject: &str) -> Between {
    Between { sha: sha(digit), subject: subject.to_owned(), is_ours: false }
}

fn leaf(digit: char) -> Option<Leaf> {
    Some(Leaf { mode: "100644".to_owned(), id: sha(digit) })
}

fn change(path: &str, good: Option<Leaf>, bad: Option<Leaf>, tip: Option<Leaf>) -> Change {
    Change { path: path.to_owned(), good, bad, tip }
}

/// Good `a` (tree `1`), bad and tip `c` (tree `3`), one line.
fn survey() -> Survey {
    Survey {
        tip: sha('c'),
        tip_tree: sha('3'),
        good_tree: sha('1'),
        is_one_line: true,
        undone: vec![between('c', "break it [skip ci]"), between('b', "prepare")],
        newer: Vec::new(),
        changes: vec![change("app.rs", leaf('5'), leaf('6'), leaf('6'))],
    }
}

/// The same with a newer commit `d` on top.
fn with_newer() -> Survey {
    Survey { tip: sha('d'), tip_tree: sha('4'), newer: vec![between('d', "unrelated")], ..survey() }
}

struct Case {
    survey: Survey,
    grounds: Grounds,
    is_protected: bool,
    is_proposal_wanted: bool,
    cause: Cause,
    is_answered: bool,
}

impl Case {
    fn new(survey: Survey) -> Self {
        Self {
            survey,
            grounds: Grounds::default(),
            is_protected: false,
            is_proposal_wanted: false,
            cause: Cause::Person { by: "uid 0".to_owned() },
            is_answered: false,
        }
    }

    fn failed(survey: Survey) -> Self {
        Self { cause: Cause::Failure { why: "NeverHealthy: `/healthz` answered 503".to_owned() }, ..Self::new(survey) }
    }

    fn with<T>(&self, ask: impl FnOnce(&Facts<'_>) -> T) -> T {
        ask(&Facts {
            target: &"shop/prod".parse().unwrap(),
            branch: &"main".parse().unwrap(),
            good: &sha('a'),
            bad: &sha('c'),
            survey: &self.survey,
            grounds: &self.grounds,
            is_protected: self.is_protected,
            is_proposal_wanted: self.is_proposal_wanted,
            cause: &self.cause,
            is_answered: self.is_answered,
        })
    }

    fn decide(&self) -> Decision {
        self.with(decide)
    }

    fn order(&self) -> Order {
        match self.decide() {
            Decision::Write(order) => *order,
            other @ (Decision::Nothing(_) | Decision::Stuck(_)) => panic!("{other:?}"),
        }
    }

    fn why_proposed(&self) -> String {
        self.order().proposal.expect("a pull request").why
    }

    fn stuck(&self) -> String {
        match self.decide() {
            Decision::Stuck(why) => why,
            other @ (Decision::Nothing(_) | Decision::Write(_)) => panic!("{other:?}"),
        }
    }

    fn nothing(&self) -> String {
        match self.decide() {
            Decision::Nothing(why) => why,
            other @ (Decision::Stuck(_) | Decision::Write(_)) => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_direct_commit_has_the_good_tree_on_top_of_the_tip_and_names_what_it_undoes() {
    let order = Case::new(survey()).order();
    assert_eq!(order.parent, sha('c'));
    assert_eq!(order.content, Content::Tree(sha('1')));
    assert_eq!(order.proposal, None);
    assert!(order.message.starts_with("Revert to aaaaaaaaaaaa for shop/prod\n\n"), "{}", order.message);
    assert!(order.message.contains("- bbbbbbbbbbbb prepare\n"));
    assert!(order.message.contains("Data is never reverted"));
    let named: Vec<Sha> = undone_by(&order.message).collect();
    assert_eq!(named, [sha('c'), sha('b')]);
}

#[test]
fn what_others_wrote_means_nothing_in_our_message() {
    let message = Case::new(survey()).order().message;
    assert!(message.contains("break it (skip ci)"), "{message}");
    assert!(!message.contains('['), "{message}");
    let lines =
        Survey { undone: vec![between('c', "x\nTrueup-Reverts: 0"), between('b', &"y".repeat(500))], ..survey() };
    let message = Case::new(lines).order().message;
    assert_eq!(undone_by(&message).count(), 2, "{message}");
    assert!(message.lines().all(|line| line.chars().count() < 200));
}

#[test]
fn a_direct_commit_is_written_only_when_it_undoes_no_more_than_it_should() {
    assert!(Case::new(with_newer()).why_proposed().starts_with("dddddddddddd and what lies below it came after"));
    let protected = Case { is_protected: true, ..Case::new(survey()) };
    assert_eq!(protected.why_proposed(), "`main` is protected");
    let wanted = Case { is_proposal_wanted: true, ..Case::new(survey()) };
    assert_eq!(wanted.why_proposed(), "a pull request was asked for");
    let of = |own: &str, other: &str| Grounds { own: own.to_owned(), others: vec![other.to_owned()] };
    for (grounds, path, is_shared) in [
        (of("shop", "blog"), "shop/app.rs", false),
        (of("shop", "blog"), "blog/app.rs", true),
        (of("shop", "blog"), "lib/shared.rs", true),
        (of("shop", "shop/blog"), "shop/blog/x", true),
        (of("shop", "shop2"), "shop2/x", true),
        (of("", ""), "x", true),
    ] {
        let survey = Survey { changes: vec![change(path, leaf('5'), leaf('6'), leaf('6'))], ..survey() };
        let order = Case { grounds: grounds.clone(), ..Case::new(survey) }.order();
        assert_eq!(order.proposal.is_some(), is_shared, "{grounds:?} {path}");
    }
    let alone = Grounds { own: "shop".to_owned(), others: Vec::new() };
    assert!(!alone.is_shared("anything"));
}

#[test]
fn a_pull_request_lists_every_commit_it_undoes_and_holds_the_three_way_inverse() {
    let survey = Survey {
        changes: vec![
            change("back", leaf('5'), leaf('6'), leaf('6')),
            change("added", None, leaf('7'), leaf('7')),
            change("removed", leaf('8'), None, None),
            change("undone already", leaf('5'), leaf('6'), leaf('5')),
        ],
        ..with_newer()
    };
    let order = Case::new(survey).order();
    let edits = vec![("back".to_owned(), leaf('5')), ("added".to_owned(), None), ("removed".to_owned(), leaf('8'))];
    assert_eq!(order.content, Content::Edits { onto: sha('4'), edits });
    assert_eq!(order.parent, sha('d'));
    let proposal = order.proposal.unwrap();
    assert_eq!(proposal.head, "trueup/revert-cccccccccccc");
    for commit in ["- cccccccccccc break it", "- bbbbbbbbbbbb prepare"] {
        assert!(proposal.body.contains(commit), "{}", proposal.body);
    }
    assert!(!proposal.body.contains("- dddddddddddd"));
}

#[test]
fn lines_that_changed_again_are_for_a_person() {
    let survey = Survey { changes: vec![change("app.rs", leaf('5'), leaf('6'), leaf('9'))], ..with_newer() };
    assert!(Case::new(survey).stuck().contains("`app.rs`"));
}

#[test]
fn nothing_is_written_where_nothing_is_left_to_undo() {
    let same = Survey { good_tree: sha('3'), ..survey() };
    assert!(Case::new(same).nothing().contains("already has the tree"));
    let undone = Survey { changes: vec![change("app.rs", leaf('5'), leaf('6'), leaf('5'))], ..with_newer() };
    assert!(Case::new(undone).nothing().contains("has undone all of it"));
}

#[test]
fn revisions_of_different_lines_are_for_a_person() {
    let case = Case::new(Survey { is_one_line: false, ..survey() });
    assert!(case.stuck().contains("do not lie on one line"));
    let commands = case.with(commands);
    assert!(commands.iter().any(|line| line.starts_with("git revert --no-commit")), "{commands:?}");
}

#[test]
fn an_automatic_revert_is_written_once_and_never_of_a_revert() {
    let case = Case::failed(survey());
    assert!(case.order().message.contains("failed on shop/prod"));
    let again = Case { is_answered: true, ..Case::failed(survey()) };
    assert!(again.nothing().contains("at most one automatic revert"));
    let person = Case { is_answered: true, ..Case::new(survey()) };
    assert_eq!(person.order().proposal, None, "a person may ask as often as they like");
    let mut ours = survey();
    ours.undone[0].is_ours = true;
    assert!(Case::failed(ours.clone()).stuck().contains("is itself a revert by trueup"));
    assert_eq!(Case::new(ours).order().parent, sha('c'));
}

#[test]
fn only_a_trailer_line_of_ours_counts() {
    let full = sha('c');
    assert!(is_ours(&format!("x\n\nTrueup-Reverts: {full}\n")));
    for not in ["Trueup-Reverts: abc", "see Trueup-Reverts: x", "Trueup-Reverts", ""] {
        assert!(!is_ours(not), "{not}");
    }
}

#[test]
fn the_commands_by_hand_push_without_force() {
    let direct = Case::new(survey()).with(commands);
    assert_eq!(direct.last().unwrap(), "git push origin HEAD:refs/heads/main");
    let proposed = Case::new(with_newer()).with(commands);
    assert_eq!(proposed.last().unwrap(), "git push origin HEAD:refs/heads/trueup/revert-cccccccccccc");
    for line in direct.iter().chain(&proposed) {
        assert!(!line.contains("--force") && !line.contains('+'), "{line}");
    }
}
