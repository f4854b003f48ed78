"""Tables of other programs: they are refused, and their columns give the right number.

Each layout is a table under the names that a program writes, with the options by which a reader
gets the number that plain numpy gives.
"""

import json

import numpy as np
import pytest

from helpers.command_line import failure, run
from helpers.field_samples import as_csv, as_json_lines, as_rows, draw_risks, plain_ece

Y, P = draw_risks()
N = len(Y)
SIDE = (P > 0.5).astype(int)
IDS = np.arange(1, N + 1)
TOP = np.maximum(P, 1 - P).round(6)
NO_YES = np.array(["no", "yes"])
RNG = np.random.default_rng(3)
V = RNG.dirichlet([2, 1, 1], N).round(5)
V[:, 0] = 1 - V[:, 1:].sum(axis=1)
K = np.array([RNG.choice(3, p=row / row.sum()) for row in V])
GUESS = V.argmax(axis=1)
PETS = np.array(["cat", "dog", "owl"])
LOGITS = np.log(V + 1e-9).round(4)
EXP = np.exp(LOGITS)
SOFTMAX = EXP / EXP.sum(axis=1, keepdims=True)

OF_EVENT = plain_ece(Y, P)
OF_TOP = plain_ece(Y == SIDE, TOP)
OF_CLASSES = plain_ece(GUESS == K, V.max(axis=1))
OF_LOGITS = plain_ece(LOGITS.argmax(axis=1) == K, SOFTMAX.max(axis=1))
OF_PERCENTS = plain_ece(Y, (100 * P).round(2) / 100)


def vectors(form, numbers=V, names=PETS):
    """Columns of class vectors, named by a form of the class."""
    return {form.format(name): column for name, column in zip(names, numbers.T, strict=True)}


def pair(form):
    """Columns of the probabilities of no and yes."""
    return vectors(form, np.column_stack([1 - P, P]).round(6), NO_YES)


EVENT = "--y-true {} --y-prob {}"
# Columns, options that read the table (None: nothing does), and the calibration error.
LAYOUTS = {
    "caret, two classes": (
        {"pred": NO_YES[SIDE], "obs": NO_YES[Y], **pair("{}"), "rowIndex": IDS, "Resample": "F1"},
        "--y-true obs", OF_TOP),
    "caret, three classes": (
        {"pred": PETS[GUESS], "obs": PETS[K], **vectors("{}"), "Resample": "Fold1"},
        "--y-true obs", OF_CLASSES),
    "tidymodels, two classes": (
        {".pred_class": NO_YES[SIDE], **pair(".pred_{}"), ".row": IDS, "Class": NO_YES[Y]},
        "--y-true Class --y-prob .pred_no,.pred_yes", OF_TOP),
    "tidymodels, three classes": (
        {"id": "train", ".pred_class": PETS[GUESS], **vectors(".pred_{}"), "truth": PETS[K]},
        "--y-true truth --y-prob .pred_cat,.pred_dog,.pred_owl", OF_CLASSES),
    "yardstick": (
        {"truth": NO_YES[Y], "no": (1 - P).round(6), "yes": P, "predicted": NO_YES[SIDE]},
        "--y-true truth", OF_TOP),
    "mlr3": (
        {"row_ids": IDS, "truth": PETS[K], "response": PETS[GUESS], **vectors("prob.{}")},
        "--y-true truth", OF_CLASSES),
    "mlr": (
        {"id": IDS, "truth": NO_YES[Y], **pair("prob.{}"), "response": NO_YES[SIDE]},
        "--y-true truth", OF_TOP),
    "Weka": (
        {"inst#": IDS, "actual": NO_YES[Y], "predicted": NO_YES[SIDE], "prediction": TOP},
        "", OF_TOP),
    "H2O, two classes": (
        {"predict": SIDE, "p0": (1 - P).round(6), "p1": P, "bad_loan": Y},
        "--y-true bad_loan --y-prob p1", OF_EVENT),
    "H2O, three classes": (
        {"predict": PETS[GUESS], **vectors("{}"), "species": PETS[K]},
        "--y-true species", OF_CLASSES),
    "SAS": (
        {"F_BAD": NO_YES[Y], "I_BAD": NO_YES[SIDE], **pair("P_BAD{}")},
        "--y-true F_BAD --y-prob P_BADyes --pos-label yes", OF_EVENT),
    "SPSS": (
        {"died": Y, "PRE_1": P, "PGR_1": SIDE},
        EVENT.format("died", "PRE_1"), OF_EVENT),
    "scikit-learn, one column": (
        {"y_test": Y, "y_pred": SIDE, "y_proba": P},
        EVENT.format("y_test", "y_proba"), OF_EVENT),
    "scikit-learn, a matrix": (
        {"target": K, **vectors("{}", names=["0", "1", "2"])},
        EVENT.format("target", "0,1,2"), OF_CLASSES),
    "scikit-learn, a matrix and predictions": (
        {"y": K, "yhat": GUESS, **vectors("proba_{}", names=["0", "1", "2"])},
        EVENT.format("y", "proba_*"), OF_CLASSES),
    "pandas, with its index": ({"": IDS, "y_true": Y, "y_prob": P}, "", OF_EVENT),
    "transformers, a pipeline": (
        {"text": [f"text {k}" for k in IDS], "label": NO_YES[SIDE], "score": TOP,
         "gold": NO_YES[Y]},
        "", OF_TOP),
    "LightGBM": (
        {"row_id": IDS, "is_churn": Y, "prediction": P},
        EVENT.format("is_churn", "prediction"),
        OF_EVENT),
    "XGBoost, margins": (
        {"label": Y, "margin": np.log(P / (1 - P))},
        "--y-true label --y-prob margin --from-logits", OF_EVENT),
    "Kaggle, a submission": (
        {"id": IDS, "target": P}, None, None),
    "Kaggle, out-of-fold predictions": (
        {"id": IDS, "fold": IDS % 5, "target": Y, "oof_pred": P},
        EVENT.format("target", "oof_pred"), OF_EVENT),
    "AutoGluon": (
        {"": IDS, "class": PETS[K], **vectors("{}")}, "--y-true class", OF_CLASSES),
    "Azure ML Studio": (
        {"income": NO_YES[Y], "Scored Labels": NO_YES[SIDE], "Scored Probabilities": P},
        ["--y-true", "income", "--y-prob", "Scored Probabilities", "--pos-label", "yes"],
        OF_EVENT),
    "Azure AutoML": (
        {"y": PETS[K], "Predicted": PETS[GUESS], **vectors("{}_predicted_proba")},
        "--y-true y --y-prob *_predicted_proba --labels cat,dog,owl", OF_CLASSES),
    "Vertex": (
        {"churned": NO_YES[Y], **pair("churned_{}_scores")},
        "--y-true churned --y-prob churned_yes_scores --pos-label yes", OF_EVENT),
    "DataRobot": (
        {"readmitted": NO_YES[Y], **pair("readmitted_{}_PREDICTION"),
         "readmitted_PREDICTION": NO_YES[SIDE], "THRESHOLD": 0.5},
        "--y-true readmitted --y-prob readmitted_yes_PREDICTION --pos-label yes", OF_EVENT),
    "KNIME": (
        {"Class": PETS[K], **vectors("P (Class={})"), "Prediction (Class)": PETS[GUESS]},
        ["--y-true", "Class", "--y-prob", "P (Class=*)", "--labels", "cat,dog,owl"], OF_CLASSES),
    "RapidMiner": (
        {"label": PETS[K], "prediction(label)": PETS[GUESS], **vectors("confidence({})")},
        "--y-true label --y-prob confidence(*) --labels cat,dog,owl", OF_CLASSES),
    "Orange": (
        {"species": PETS[K], "Tree": PETS[GUESS], **vectors("Tree ({})"), "Fold": IDS % 10},
        ["--y-true", "species", "--y-prob", "Tree (*)", "--labels", "cat,dog,owl"], OF_CLASSES),
    "ranger": (
        {"y": PETS[K], **vectors("prediction.{}")}, "--y-true y", OF_CLASSES),
    "glm of R": (
        {"outcome": NO_YES[Y], "fitted": P},
        "--y-true outcome --y-prob fitted --pos-label yes", OF_EVENT),
    "Stata": (
        {"foreign": Y, "mpg": 20 + IDS % 9, "phat": P}, EVENT.format("foreign", "phat"), OF_EVENT),
    "JMP": (
        {"y": PETS[K], **vectors("Prob[{}]"), "Most Likely y": PETS[GUESS]},
        "--y-true y --y-prob Prob[cat],Prob[dog],Prob[owl] --labels cat,dog,owl", OF_CLASSES),
    "a test set with predictions": (
        {"age_scaled": RNG.random(N).round(4), "y_true": Y, "fraud_probability": P,
         "fraud_flag": SIDE},
        "--y-prob fraud_probability", OF_EVENT),
    "a ward": (
        {"patient": IDS, "outcome": np.array(["survived", "died"])[Y], "p_death": P},
        "--y-true outcome --y-prob p_death --pos-label died", OF_EVENT),
    "logits": (
        {"label": K, **vectors("logit_{}", LOGITS, ["0", "1", "2"])},
        "--y-true label --y-prob logit_* --from-logits", OF_LOGITS),
    "percents of classes": (
        {"label": PETS[K], **vectors("p_{}", 100 * V)},
        "--y-true label --percent", OF_CLASSES),
    "percents of an event": (
        {"died": Y, "risk": (100 * P).round(2)},
        "--y-true died --y-prob risk --percent", OF_PERCENTS),
    "a spreadsheet with signs": (
        {"died": Y, "risk": [f"{x:.4f}%" for x in 100 * P]},
        EVENT.format("died", "risk"), OF_EVENT),
    "a survey of language models": (
        {"question": [f"q{k}" for k in IDS], "correct": Y == SIDE, "confidence": TOP},
        EVENT.format("correct", "confidence"), OF_TOP),
}  # fmt: skip
# Names under which columns are read where no option names those of a prediction.
RENAMED = {
    "Weka": {"true_label": "actual", "pred_label": "predicted", "confidence": "prediction"},
    "transformers, a pipeline": {
        "true_label": "gold",
        "pred_label": "label",
        "confidence": "score",
    },
}
FORMS = {"a.csv": as_csv, "a.jsonl": lambda x: as_json_lines(as_rows(x)),
         "a.json": lambda x: json.dumps(as_rows(x))}  # fmt: skip


def whole(columns):
    """Repeat columns of one value for all rows."""
    return {
        name: np.full(N, column) if np.ndim(column) == 0 else np.asarray(column)
        for name, column in columns.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6))
def test_tables_of_other_programs_are_refused_and_read_by_options(capsys, write, error_of, part):
    """A sixth of the layouts, each in one of the forms."""
    for k, (layout, (columns, options, error)) in enumerate(list(LAYOUTS.items())[part::6]):
        form = list(FORMS)[(k + part) % 3]
        path = write(FORMS[form](whole(columns)), form)
        if layout != "pandas, with its index":
            message = failure(capsys, "report", path)
            assert "fastece report" not in message
            assert "it has " in message
            assert "name the labels with --y-true and the probabilities with --y-prob" in message
        if options is None:
            continue
        if layout in RENAMED:
            columns = {new: columns[old] for new, old in RENAMED[layout].items()}
            path = write(FORMS[form](columns), f"named_{form}")
        words = options.split() if isinstance(options, str) else options
        assert error_of(path, *words) == pytest.approx(error, abs=1e-12), layout


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({"pred": NO_YES[SIDE], "obs": NO_YES[Y], **pair("{}")}, "--y-true pred"),
        ({".pred_class": PETS[GUESS], **vectors(".pred_{}")}, "--y-true .pred_class"),
        ({"y_pred": SIDE, "y_proba": P}, "--y-true y_pred --y-prob y_proba"),
        ({"predicted": K * 0 + GUESS, **vectors("p_{}", names="012")}, "--y-true predicted"),
    ],
)
def test_a_prediction_that_is_named_as_the_label_is_a_warning(capsys, write, columns, options):
    options = options.replace(".pred_class", ".pred_class --y-prob .pred_cat,.pred_dog,.pred_owl")
    code, _, err = run(capsys, "report", write(as_csv(columns)), *options.split())
    assert code == 0
    assert "is the most probable class in every row: it looks like the prediction" in err


def test_labels_with_the_name_of_a_prediction_are_no_warning(capsys, write):
    columns = {"predicted_outcome": Y, "p": P}
    options = ["--y-true", "predicted_outcome", "--y-prob", "p"]
    code, _, err = run(capsys, "report", write(as_csv(columns)), *options)
    assert (code, err) == (0, "")


def test_the_label_with_the_higher_probabilities_is_shown(capsys, write):
    columns = {"outcome": np.array(["survived", "died"])[Y], "p_death": P}
    options = ["--y-true", "outcome", "--y-prob", "p_death"]
    message = failure(capsys, "report", write(as_csv(columns)), *options)
    assert "its mean is 0.44 where the label is 'died' and 0.22 where it is 'survived'" in message
    assert "pass --pos-label" in message


def test_a_header_that_is_missing_is_shown(capsys, write):
    message = failure(capsys, "report", write("0,0.7\n" + "1,0.3\n" * 20))
    assert "these names are numbers: is the header missing?" in message
