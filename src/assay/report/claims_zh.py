"""Sentences of the claims that studies usually make, their assumptions and what no checker can detect, in Chinese.

Numbers are rounded to the side on which a sentence stays true, as in the English ones. A claim that is not listed here
is shown in English.
"""

from collections.abc import Callable, Mapping
from typing import Any

from assay.checker.families.folds import of_vote
from assay.claims.claim import Certificate, Claim
from assay.claims.sentences import outward, percent, up
from assay.claims.words import MOST_NAMED

Sentence = Callable[[float, str, Mapping[str, Any]], str]
_SETS = {"train": "训练", "holdout": "留出"}
_SIDES = {"upper": "不超过", "lower": "不低于"}


def said_zh(claim: Claim) -> str:
    """Return the sentence of a claim in Chinese; empty if there is none."""
    sentence = _SENTENCES.get(claim.template)
    return "" if sentence is None else sentence(claim.value, claim.direction, claim.params)


def population_zh(certificate: Certificate) -> str:
    """Return what new data must be like for the statements about it, in Chinese; see `claims.words.population`."""
    known = certificate.data.get("train")
    if known is None:
        return "未知：证书没有指明训练行。"
    parts = [f"同样的 {known.columns} 列，以同样的方式测得"]
    if known.labels is not None:
        names = "、".join(map(repr, known.labels[:MOST_NAMED])) + ("……" if len(known.labels) > MOST_NAMED else "")
        parts.append(f"{len(known.labels)} 个类别 {names}，任何其他类别的行都算作错误")
    if certificate.named_columns:
        parts.append(f"列 {certificate.named_columns[0]!r} 的新组，与这些组一样抽取，而不是原有各组的更多行")
    when = "同一时期"
    if certificate.time is not None:
        when = f"与按列 {certificate.time['name']!r} 最新的行（即留出行）同一时期"
    return f"与给定的行一样抽取的更多行：{'；'.join(parts)}；并且处于{when}：一旦行的来源改变，就不再有任何保证。"


DECLARED_ZH = "留出行是随机抽取的，或是最新的：证书没有给出可据以检验的种子或时间列 [A-SPLIT(holdout)]"


def _compared(params: Mapping[str, Any]) -> str:
    many = params.get("compared", 1)
    return f"，已为在这些行上比较 {many} 个模型作 Bonferroni 校正" if many > 1 else ""


def _identity(value: float, direction: str, params: Mapping[str, Any]) -> str:
    about = f"本证书所说的正是这 {int(value)} 个{_SETS[params['set']]}行"
    if params["set"] == "train":
        return f"{about}。"
    return f"{about}；其中 {params['near']} 行与训练行相同，或前三位数字都相同。"


def _errors(value: float, direction: str, params: Mapping[str, Any]) -> str:
    rows = f"在 {params['rows']} 个{_SETS[params['set']]}行上"
    if params["loss"] == "zero-one":
        many = f"{int(value)}" if params["low"] == value else f"{params['low']} 到 {int(value)} "
        return f"{rows}，模型答错 {many} 行。"
    return f"{rows}，均方误差在 {outward(params['low'], 'lower', 6)} 与 {up(value, 6)} 之间。"


def _floor(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return f"任何分类器在训练行上至少答错 {int(value)} 行，因为有些行各列相同而标签不同。"


def _gap(value: float, direction: str, params: Mapping[str, Any]) -> str:
    which = f"（第 {params['class']} 类对其余各类）" if "class" in params else ""
    return f"训练目标函数{which}至多比其最小值高 {up(value)}。"


def _enclosure(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return f"系数与精确最优解的距离不超过 {up(value)}。"


def _tree(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return f"这棵树有 {params['leaves']} 个叶结点，深度为 {params['depth']}。"


def _rate(value: float, direction: str, params: Mapping[str, Any]) -> str:
    rows = f"{params['rows']} 个留出行中答错 {params['errors']} 行{_compared(params)}"
    return f"新数据上的错误率{_SIDES[direction]} {percent(value, direction)}（{rows}）。"


def _mean_loss(how: str) -> Sentence:
    def sentence(value: float, direction: str, params: Mapping[str, Any]) -> str:
        if params.get("loss") not in (None, "absolute"):
            return ""
        what = f"新数据上的平均绝对误差（误差以 {params['clip']:g} 为上限）"
        return f"{what}{_SIDES[direction]} {outward(value, direction, 6)}（{how}{_compared(params)}）。"

    return sentence


def _area(value: float, direction: str, params: Mapping[str, Any]) -> str:
    rows = f"两类各有 {params['positives']} 和 {params['negatives']} 个留出行{_compared(params)}"
    return f"这两类的新数据上，ROC 曲线下的面积不低于 {outward(value, direction, 4)}（{rows}）。"


def _thresholds(value: float, direction: str, params: Mapping[str, Any]) -> str:
    what = "各类中得分高于阈值的比例，在留出行与新数据之间至多相差"
    return f"对所有阈值同时成立：{what} {up(value, 4)}{_compared(params)}。"


def _baseline(value: float, direction: str, params: Mapping[str, Any]) -> str:
    alone, other = params["alone"], params["other_alone"]
    rows = f"{params['rows']} 个留出行中，只有模型答错的 {alone} 行，只有该回答答错的 {other} 行"
    answer = "总是回答训练行中最常见的类别"
    if direction == "upper":
        return f"新数据上的错误率比“{answer}”至多高 {percent(value)}（{rows}）。"
    return f"新数据上的错误率比“{answer}”至少低 {percent(value, direction)}（{rows}）。"


def _better(value: float, direction: str, params: Mapping[str, Any]) -> str:
    alone, other = params["alone"], params["other_alone"]
    rows = f"留出行中此类行共 {alone + other} 行，其中模型错的 {alone} 行"
    return (
        "新数据上，模型比“总是回答训练行中最常见的类别”错得少："
        f"在两者只有一个答错的行中，模型答错的至多占 {percent(value)}（{rows}）。"
    )


def _coverage(value: float, direction: str, params: Mapping[str, Any]) -> str:
    share = percent(params["coverage"], "lower")
    what = "（区间：预测值加减该大小；分类：得分与最高分之差不超过它的类别）"
    return f"大小为 {up(value, 6)} 的预测集{what}至少包含 {share} 的新数据的真值{_compared(params)}。"


def _f1(value: float, direction: str, params: Mapping[str, Any]) -> str:
    which = f"第 {params['label']} 类的" if "label" in params else "各类平均的 "
    return f"{which} F1 在新数据上不低于 {outward(value, direction, 4)}（{params['rows']} 个留出行）。"


def _balanced(value: float, direction: str, params: Mapping[str, Any]) -> str:
    others = f"模型不认识的类（这些行中有 {params['others']} 行）合为一类，全算错，" if params["others"] else ""
    return f"模型认识的各类同等看待时，{others}新数据上的错误率不超过 {percent(value)}（{params['rows']} 个留出行）。"


def _in_groups(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return outward(value, direction, 6) if "loss" in params else percent(value, direction)


def _groups(value: float, direction: str, params: Mapping[str, Any]) -> str:
    what = f"平均绝对误差（误差截断于 {params['clip']:g}）" if "loss" in params else "错误率"
    rows = f"（{params['groups']} 个留出组，即列 {params['group']!r} 的取值，每组为一次抽取）"
    return f"新组内{what}的平均值不超过 {_in_groups(value, direction, params)}{rows}。"


def _groups_baseline(value: float, direction: str, params: Mapping[str, Any]) -> str:
    how = "低" if direction == "lower" else "高"
    bound = f"{_SIDES[direction]} {_in_groups(value, direction, params)}"
    rows = f"{params['groups']} 个留出组，即列 {params['group']!r} 的取值"
    return f"新组内的平均损失比不看任何列的基线{how}，相差{bound}（{rows}）。"


def _folds(value: float, direction: str, params: Mapping[str, Any]) -> str:
    folds = params["folds"]
    return (
        f"{folds} 个折模型在新数据上的平均错误率（即对每行随机抽一个模型的错误率）不超过 {percent(value)}；"
        f"因此它们投票的错误率不超过 {percent(of_vote(value, folds))}。"
    )


def _folds_loss(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        f"{params['folds']} 个折模型的平均值在新数据上的平均绝对误差"
        f"（超出预测范围的目标按端点计）不超过 {up(value, 6)}。"
    )


def _folds_baseline(value: float, direction: str, params: Mapping[str, Any]) -> str:
    how = "低" if direction == "lower" else "高"
    return (
        f"对 {params['folds']} 个折模型取平均，其在新数据上的错误率比总是回答该折之外最常见的类别{how}，"
        f"相差{_SIDES[direction]} {percent(value, direction)}。"
    )


def _folds_median(value: float, direction: str, params: Mapping[str, Any]) -> str:
    how = "低" if direction == "lower" else "高"
    return (
        f"对 {params['folds']} 个折模型取平均，其在新数据上的平均绝对误差比总是回答该折之外目标的中位数{how}，"
        f"相差{_SIDES[direction]} {outward(value, direction, 6)}（超出该折之外目标范围的目标与预测按端点计）。"
    )


_SENTENCES: dict[str, Sentence] = {
    "D01/1": _identity,
    "D02/1": _errors,
    "D03/1": _floor,
    "D04/1": _gap,
    "D15/1": _enclosure,
    "D27/1": _tree,
    "P01/1": _rate,
    "P03/1": _mean_loss("Chernoff 界，留出行"),
    "P04/1": _mean_loss("经验 Bernstein 界，留出行"),
    "P05/1": _mean_loss("下注法，留出行"),
    "P06/1": _area,
    "P06/2": _thresholds,
    "P07/1": _rate,
    "P25/1": _coverage,
    "P61/1": _baseline,
    "P61/2": _better,
    "P63/1": _f1,
    "P64/1": _balanced,
    "P66/1": _groups,
    "P66/2": _groups_baseline,
    "P22/1": _folds,
    "P22/2": _folds_loss,
    "P62/1": _folds_baseline,
    "P62/2": _folds_median,
}

ASSUMPTIONS_ZH = {
    "A-IID(train)": "训练行独立地抽自同一分布，新数据也来自该分布",
    "A-IID(holdout)": "留出行独立地抽自同一分布，新数据也来自该分布",
    "A-SPLIT(holdout)": "模型的一切（预处理、特征、超参数、停止时机）都不是看着留出行选的，"
    "留出行及抽取它们的种子也不是看着选的",
    "A-RANGE": "损失按其定义落在所说的范围内，且该范围在看到这些行之前就已确定",
    "A-CLASS": "假设类（特征、编码、核）在看到有标签的样本之前就已确定",
    "A-PRIOR": "先验、编码或网格在看到样本之前就已确定",
    "A-DELTA": "置信度和声明的选择事先确定，或已记入账本",
    "A-ORDER": "行的顺序不是看着其取值选的",
    "A-FOLDS": "折数和各折的种子不是看着行选的，每一折的模型都没有用该折拟合",
    "A-RNG": "伪随机比特（包括 SHA-256 的）与独立的公平比特无异，且与数据无关",
    "A-BAGS": "每个成员只依赖自己那一袋训练行，抽袋时没有看行的内容",
    "A-SUPP": "无论训练行还是新数据，没有一行的长度超过事先确定的半径",
    "A-KERNEL": "核是半正定的",
    "A-GROUPS(holdout)": "留出行的各组（即所说的列的取值）独立地抽自同一总体，新组也来自该总体",
}

UNDETECTABLE_ZH = (
    "看过评估行之后才选定的特征、超参数、种子或模型类",
    "并非独立抽取的行：划分两侧的重复、成组的行、时间序列",
    "来自另一分布的新数据",
    "看过结果之后才选定的置信度",
    "Assay 之外的模型类，其预测与所存的数不一致",
)
