"""Sentences of the claims in Chinese: by the claim's name the texts that `assay.claims.sentences` describes.

English ones, the source, stand with the definitions in the checker; texts and values are the same in both.
"""

_COMPARED = {"compared": "，已为在这些行上比较 {compared} 个模型作 Bonferroni 校正"}
_PROBLEM = {
    "loss": "{loss:term}损失",
    "C": "C = {C:g}",
    "number": "{name} = {number:g}",
    "penalty": "{name} 惩罚 {number:g}",
    "weights": "类别权重 {weights:, }",
    "column": "截距作为常数列 {column:g} 的系数受惩罚",
    "free": "截距不受惩罚",
    "none": "无截距",
}
_GAP = _PROBLEM | {
    "": "训练目标函数{which}（{problem:，}）至多比其最小值高 {value:up}。",
    "pair": "（第 {pair} 对类别）",
    "class": "（第 {class} 类对其余各类）",
}
_CLASSES = {"one": "第 {class} 类与其他类", "all": "各类"}
_PLANE = _CLASSES | {"plane": "超平面", "origin": "过原点的超平面"}
_WEIGHED = "（行若有权重，按权重计）"
_SCORE = {"bdeu": "BDeu 评分（预先计 {samples:g} 行）", "penalised": "评分 {factor:.6g} × 参数个数 − 对数似然"}
_LISTED = {"all": "{listed:，}", "some": "{listed:，} 等（另有 {more} 个）"}
_ONE_CLASS = {"class": "（第 {class} 类）"}


def _rate(how: str) -> dict[str, str]:
    return {"": f"新数据上的错误率不超过 {{value:percent}}（{how}）。"}


def _mean_loss(how: str) -> dict[str, str]:
    return _COMPARED | {
        "": f"{{what}}不超过 {{bound:out6}}（{how}{{choice}}）。",
        "absolute": "新数据上的平均绝对误差（误差以 {clip:g} 为上限）",
        "brier": "新数据上得分的逻辑斯谛函数的 Brier 分数的一半",
        "distance": "新数据到所拟合的中心或仿射子空间的均方距离（以 {clip:g} 为上限）",
        "log": "新数据上 -ln p(x) 的平均值（截断于 [{low:g}, {high:g}]）",
    }


def _distance(what: str) -> dict[str, str]:
    return {
        "": f"新数据到{what}的均方距离不超过 {{value:up6}}，前提是没有一行的长度超过 {{radius:g}}；"
        "两个数都事先确定（{rows} 个训练行）。"
    }


def _mistakes() -> dict[str, str]:
    return _CLASSES | {
        "": "为分开{classes}，感知机作了 {updates} 次更新，不超过界 (R / 间隔)^2 <= {value:up6}"
        "（分离超平面的间隔为 {margin:down6}）。"
    }


_BASELINE = "总是预测训练行中最常见的类别"
_ALONE = "{rows} 个留出行中，仅模型答错的 {alone} 行，仅对方答错的 {other_alone} 行"
_GIVEN = "；对方的预测按给定的采用，如果它们是看着留出行的标签作出的，本条就没有意义"
_GROUPS = "{groups} 个留出组，即列 {group!r} 的取值，共 {rows} 行；每组为一次抽取"
_ENDS = "超出该折之外目标范围的目标与预测按端点计"

CLAIMS: dict[str, dict[str, str]] = {
    "data.identity": {
        "train": "本证书所说的正是这 {value:count} 个训练行。",
        "holdout": "本证书所说的正是这 {value:count} 个留出行；其中 {near} 行与训练行相同，或前三位数字都相同。",
    },
    "train.errors": {
        "": "在 {rows} 个{set:term}行上，模型答错 {many} 行。",
        "exact": "{value:count}",
        "between": "{low} 到 {value:count}",
        "squared": "在 {rows} 个{set:term}行上，均方误差在 {low:down6} 与 {value:up6} 之间。",
    },
    "train.error-floor": {"": "任何分类器在训练行上至少答错 {value:count} 行，因为有些行各列相同而标签不同。"},
    "duality-gap": _GAP,
    "kernel-duality-gap": _GAP,
    "multinomial.gap": _GAP,
    "suboptimality": _PROBLEM
    | {
        "": "训练目标函数（{problem:，}）至多比其最小值高 {value:up}。",
        "near": "与这些系数距离不超过 {radius:.3g} 的任何系数，都不能使训练目标函数（{problem:，}）再降低 {value:up} 以上。",
    },
    "one-class.gap": {"": "训练目标函数（单类，nu = {nu:g}）至多比其最小值高 {value:up}。"},
    "margin.bounds": _PLANE
    | {
        "lower": "有{plane}把{classes}分开，间隔不小于 {value:out6}{where}。",
        "upper": "没有{plane}能把{classes}以大于 {value:out6} 的间隔分开{where}。",
        "augmented": "（在添加了常数列的空间中）",
    },
    "kernel-margin.bounds": {
        "lower": "各类在核的空间中被分开，间隔不小于 {value:out6}。",
        "upper": "在核的空间中，没有超平面能把各类以大于 {value:out6} 的间隔分开。",
    },
    "inseparability": _PLANE
    | {
        "": "没有{plane}能把{classes}分开：列出的几行就已不可分。",
        "errors": "任何{plane}在训练行上至少答错 {value:count} 行。",
        "one-errors": "要分开{classes}，任何{plane}在训练行上至少答错 {value:count} 行。",
    },
    "solution.enclosure": {
        "": "系数与精确最优解的距离不超过 {value:up}。{same}",
        "fixed": "精确最优解至少在 {fixed_rows} 个训练行上预测同样的类别。",
    },
    "kkt.residual": {
        "": "最大 KKT 违反量{which}不超过 {value:up}（以间隔为单位）。",
        "pair": "（第 {pair} 对类别）",
    },
    "loo.squared-error": {"": "精确算法的均方留一误差不超过 {value:up6}。"},
    "loo.errors": {"": "精确算法在这些行上的留一错误至多 {value:count} 个。"},
    "knn.loo-errors": {"": "在 {rows} 行中，至多 {value:count} 行自己的标签在最近的 {k} 个其他行中不占多数。"},
    "perceptron.mistakes": _mistakes(),
    "kernel-perceptron.mistakes": _mistakes(),
    "pca.optimality": {
        "": "没有{where} {components} 维仿射子空间离 {rows} 个训练行更近：它们到这一个的均方距离至多比最小值高 {value:up}。",
        "centred": "",
        "origin": "过原点的",
    },
    "kernel-pca.optimality": {
        "": "在核的空间中，没有 {components} 个方向比这些方向容纳更多的行间方差，误差不超过 {value:up}。"
    },
    "lda.optimality": {
        "": "{which}达到最大的 Fisher 比，误差不超过 {value:up}：没有别的方向能把类均值分得更开。",
        "only": "该方向",
        "first": "第一个方向",
    },
    "kernel-lda.optimality": {
        "": "在核的空间中，没有方向能使 Fisher 比之和（mu = {mu:g}）比这些方向再高 {value:up} 以上。"
    },
    "gaussian.mle": {
        "": "得分正是用极大似然拟合的{kept}的高斯类的得分{shrunk}：均值和协方差精确到 {error:up1}，"
        "中心附近的得分精确到 {value:up1}（各列以其离散程度为单位）。",
        "shared": "共用一个协方差",
        "each": "各有协方差",
        "shrunk": "（收缩 {shrinkage:g}）",
    },
    "gaussian-nb.mle": {
        "": "各类中各列的均值和方差（除以 {divisor}）正是 {rows} 个训练行的，所加之量按声明："
        "误差不超过 {value:up1}（以标准差和方差为单位）。"
    },
    "kmeans.fixed-point": {
        "": "{rows} 个训练行到 {clusters} 个中心中最近者的平方距离之和不超过 {value:up10}"
        + _WEIGHED
        + "，且没有中心离其各行的均值超过 {shift:up2}。"
    },
    "medoids.swap": {
        "": "{rows} 个训练行到 {clusters} 个中心点（都是训练行）中最近者的距离之和不超过 {cost:up10}，"
        "把一个中心点换成{every}训练行至多使该和降低 {value:up}。",
        "any": "任何",
        "spaced": "等距选取的 {candidates} 个中任何一个",
    },
    "prototypes.fixed-point": {
        "": "{rows} 个训练行到 {clusters} 个原型中最近者的相异度之和不超过 {value:up10}，"
        "在数值列上没有原型离其各行的均值超过 {shift:up2}，并且{names}。",
        "modes": "原型的每个名称都是其各行中最常见的",
        "odd": "除 {odd} 个外，原型的名称都是其各行中最常见的",
    },
    "kmeans.lower-bound": {
        "": "没有 {clusters} 个中心到训练行的平方距离之和小于 {value:out6}" + _WEIGHED + "（{how}）。",
        "spectral": "散布矩阵的特征值",
        "axes": "每一列单独的最优聚类",
    },
    "kmeans-1d.optimal": {
        "": "这些中心是直线上最好的 {clusters} 个：它们到训练行的平方距离之和至多比最小值高 {value:up}"
        + _WEIGHED
        + "。"
    },
    "density.log-likelihood": {"": "训练行的平均对数似然为 {shown} 奈特，误差不超过 {within:up1}" + _WEIGHED + "。"},
    "em.stationary": _ONE_CLASS
    | {
        "": "混合模型{which}（{covariance:term}协方差）接近 EM 的不动点{added}：一次 M 步每行至多增益 {value:up} 奈特，"
        "均值（以离散程度为单位）、协方差和权重（以份额计）至多移动 {moved:up}。",
        "added": "（每个方差加 {reg_covar:g}）",
    },
    "em.weights": _ONE_CLASS | {"": "对同样的成分{which}，没有别的权重能把训练行拟合得每行再好 {value:up} 奈特以上。"},
    "em.monotone": {
        "": "EM 从列出的起点出发，经 {steps} 步到达与模型相距不超过 {distance:up1} 之处，"
        "其中没有一步使平均对数似然降低 {value:up1} 以上。"
    },
    "adaboost.product": {"": "训练误差不超过 {value:up6}，即提升法 {rounds} 个归一化因子之积。"},
    "boosting.margin-duality": {
        "lower": "该投票给训练行的间隔不小于 {value:out6}{soft}（以权重的份额计）。",
        "upper": "没有树桩的加权投票能给训练行超过 {value:out6} 的间隔{soft}。",
        "soft": "（软间隔：每行至多计 {cap:.3g}）",
    },
    "chow-liu.optimal": {
        "": "没有一棵各列之上的树能把 {rows} 个训练行拟合得更好（对数似然）{more}。",
        "by": "，误差不超过 {value:up1} 奈特",
        "none": "",
    },
    "network.counts": {
        "": "各表保存的正是 {rows} 个训练行的计数。",
        "shared": "各表保存的是 {rows} 个训练行的计数，每个缺失值按模型分摊到它的取值上，误差不超过 {value:up2} 行。",
    },
    "network.local-optimum": (
        _LOCAL := _SCORE
        | {
            "": "增加、删除或反转网络的任何一条边，都不能使 {rows} 个训练行上的{score}再降低 {value:up1} 奈特以上；"
            "每个结点至多 {max_parents} 个父结点{fixed}。",
            "fixed": "，{n_required} 条边必须有，{n_forbidden} 条边不许有",
        }
    ),
    "network.local-optimum-mixed": _LOCAL,
    "network.optimum": (
        _BEST := _SCORE
        | {
            "": "在每个结点至多 {max_parents} 个父结点的所有网络中，"
            "没有一个在 {rows} 个训练行上的{score}再低 {value:up1} 奈特以上。"
        }
    ),
    "network.optimum-mixed": _BEST,
    "network.marginals": {"": "列出的各结点各状态的概率正是该网络的，误差不超过 {value:up1}。"},
    "network.explanation": _LISTED
    | {
        "": "{count} 个结点的任何其他状态，其联合概率都不会比 {states} 高出 1 + {excess:up1} 倍以上。",
        "given": "给定 {given}，{count} 个结点的任何其他状态，其联合概率都不会比 {states} 高出 1 + {excess:up1} 倍以上。",
    },
    "network.posterior": _LISTED
    | {"": "列出的给定 {given} 时各结点各状态的概率正是该网络的，误差不超过 {value:up1}。"},
    "network.regressions": {
        "": "数值列对其父结点的任何其他回归（方差不小于该列的百万分之一），"
        "都不能使 {rows} 个训练行的对数似然再提高 {value:up1} 奈特以上。"
    },
    "tree.facts": {"": "这棵树有 {leaves} 个叶结点，一条路径上至多 {depth} 次测试。"},
    "counts.mle": {
        "": "构成概率的计数{exact} {rows} 个训练行的计数，因此是极大似然估计，并按声明作了平滑；类别概率{shares}。",
        "exact": "正是",
        "up-to": "是（误差不超过最大者的 {value:up1}）",
        "rows": "是各类的比例",
        "smoothed": "是各类各加 {prior_alpha} 行之后的比例",
        "uniform": "相等",
        "given": "按给定的",
    },
    "histogram.counts": {"": "直方图各格保存的正是 {rows} 个训练行的计数，其中 {value:count} 行在网格之外。"},
    "knn.neighbors": {
        "": "对其中 {value:count} 行，列出的正是与之最近的 {k} 个其他行（按双精度距离，距离相同时取在前的）。"
    },
    "glm.stationarity": {
        "": "与这些系数距离不超过 {radius:.3g} 的任何系数，都不能使{distribution:term}偏差再降低 {value:up} 以上。{curved}",
        "curved": "在那里它向上弯曲，按缩放后的列至少为 {mu:down}。",
    },
    "tree.pruned": {
        "": "长成的树（{leaves} 个叶结点）的任何子树，其{criterion:term}不纯度加上每叶 {alpha:.4g} 之和，"
        "都不会再小 {value:up2} 以上。"
    },
    "network.gradient": {
        "": "训练目标函数（平均{loss:term}损失，权重衰减 {decay:g}{drawn}）对全部权重的梯度长度不超过 {value:up}；"
        "梯度为零处目标函数平坦，但不一定是最小值。",
        "share": "，比例 {share:g}",
    },
    "features.least-squares": {
        "": "对同样的隐藏单元，没有别的输出权重能把 {rows} 个训练行拟合得再好 {value:up} 以上（均方误差的一半{penalty}）。",
        "penalty": "，惩罚 {alpha:g}",
    },
    "som.fixed-point": {
        "": "映射已静止：{rows} 个训练行按半径 {radius:g} 的邻域加权，使任何原型的移动都不超过 {value:up}。"
    },
    "som.topographic-error": {"": "{rows} 个训练行中，除 {value:percent} 外，最近的两个单元在网格上相邻。"},
    "art.rest": {
        "": "各类别已静止：{rows} 个训练行中没有一行会改变某个类别或新建一个。",
        "some": "{rows} 个训练行中至多 {value:count} 行还会改变某个类别或新建一个。",
    },
    "rbm.log-likelihood": {"": "{rows} 个训练行的平均对数似然为 {shown} 奈特，误差不超过 {within:up1}。"},
    "rbm.gradient": {
        "": "{rows} 个训练行的平均对数似然对全部权重的梯度长度不超过 {value:up}；梯度为零处似然平坦，但不一定是最大值。"
    },
    "elman.gradient": {
        "": "训练目标函数（{rows} 个序列最后一步的平均损失，惩罚 {alpha:g}）对全部权重的梯度长度不超过 {value:up}；"
        "梯度为零处目标函数平坦，但不一定是最小值。"
    },
    "weights.simplex": {
        "": "在 {rows} 个训练行中的 {learnt_from} 行上，各成员的任何其他权重的均方误差都不会再小 {value:up} 以上。"
    },
    "hmm.log-likelihood": {"": "按所列切分的训练序列的对数似然为每行 {shown} 奈特，误差不超过 {within:up1}。"},
    "hmm.stationary": {
        "": "模型接近训练序列上 EM 的不动点：按所述先验对 {letters:、} 作一次 M 步，每行至多增益 {value:up} 奈特。"
    },
    "hmm.monotone": {
        "": "对 {letters:、} 的 EM 从列出的起点出发，经 {steps} 步到达与模型相距不超过 {distance:up1} 之处，"
        "其中没有一步使对数似然与对数先验之和每行降低 {value:up1} 以上。"
    },
    "topics.bound": {"": "训练文档 ln p 的变分下界为每词 {shown} 奈特，误差不超过 {within:up1}。"},
    "topics.monotone": {
        "": "从列出的起点出发的 {steps} 个批量步（每篇文档至多 {doc_steps} 步，直到其平均变化小于 {doc_tol:g}），"
        "终点与各主题的相对差不超过 {distance:up1}，其中没有一步使该下界每词降低 {value:up1} 奈特以上。"
    },
    "graph.fixed-point": {
        "": "在 {stored} 行（其中 {rows} 行有标签）的{graph}图上，{rule}不会使分布的任何一项改变超过 {value:up}。",
        "spread": "以 alpha = {alpha:g} 传播",
        "mean": "取邻居的均值",
        "nearest": " {k} 近邻",
        "gaussian": "高斯权重（gamma = {gamma:g}）",
    },
    "masked.error": {
        "": "{rows} 个训练行的每一项由该行的其余各项预测，均方误差不超过 {value:up}（以各列的离散程度为单位）。"
    },
    "holdout.binomial": {
        "upper": "新数据上的错误率不超过 {value:percent}（{rows} 个留出行中答错 {errors} 行）。",
        "lower": "新数据上的错误率不低于 {value:percent}（{rows} 个留出行中答错 {errors} 行）。",
    },
    "holdout.kl": _mean_loss("Chernoff 界，留出行"),
    "holdout.empirical-bernstein": _mean_loss("经验 Bernstein 界，留出行"),
    "holdout.betting": _mean_loss("下注法，留出行"),
    "holdout.auc": _COMPARED
    | {
        "": "这两类的新数据上，ROC 曲线下的面积不低于 {value:out4}"
        "（两类各有 {positives} 和 {negatives} 个留出行{choice}）。"
    },
    "holdout.thresholds": _COMPARED
    | {"": "对得分的所有阈值同时成立：各类中得分高于阈值的比例，在留出行与新数据之间至多相差 {value:up4}{choice}。"},
    "holdout.paired": {
        "upper": f"新数据上的错误率比另一个模型至多高 {{value:percent}}（{_ALONE}{_GIVEN}）。",
        "lower": f"新数据上的错误率比另一个模型至少低 {{value:percent}}（{_ALONE}{_GIVEN}）。",
    },
    "holdout.paired-better": {
        "": "新数据上，模型比另一个模型错得少：在两者只有一个答错的行中，模型答错的至多占 {value:percent}"
        "（此类留出行共 {both} 行，其中模型错的 {alone} 行" + _GIVEN + "）。"
    },
    "holdout.selection": _rate(
        "{rows} 个留出行中答错 {errors} 行，已为在这些行上比较 {compared} 个模型作 Bonferroni 校正"
    ),
    "occam": _rate("{rows} 个训练行中答错 {errors} 行，树的描述长度"),
    "vc": _rate("{rows} 个训练行中答错 {errors} 行，假设类的增长函数"),
    "rademacher.empirical": _rate("{rows} 个训练行中答错 {errors} 行，树桩对 {draws} 次随机符号的拟合程度"),
    "margin.kernel": _rate("{rows} 个训练行的间隔，权重的长度"),
    "margin.multiclass": _rate("{rows} 个训练行的间隔，权重的长度"),
    "margin.l1": _rate("{rows} 个训练行的间隔，权重绝对值之和"),
    "margin.boosting": _rate("{rows} 个训练行在投票中的间隔"),
    "compression.perceptron": _rate("{rows} 个训练行中，更新所用的 {kept} 行之外答错 {errors} 行"),
    "compression.support-vectors": _rate("{rows} 个训练行中，{kept} 个支持向量之外存疑的 {errors} 行"),
    "compression.kernel-perceptron": _rate("{rows} 个训练行中，更新所用的 {kept} 行之外答错 {errors} 行"),
    "compression.voted-perceptron": _rate("{rows} 个训练行中，学习所用的 {kept} 行之外答错 {errors} 行"),
    "stability.uniform": _rate("{rows} 个训练行，每一行对模型的影响都很小"),
    "stability.ball": _rate("{rows} 个训练行，每一行对模型的影响都很小；没有一行的长度超过 {radius:g}"),
    "pac-bayes.linear": _rate("{rows} 个训练行的间隔，权重中的噪声"),
    "pac-bayes.vote": _rate("{members} 个成员在各自的袋外行上，{form:term}形式"),
    "progressive.vote": _rate(
        "各假设在学习之前先遇到的训练行上错 {errors} 次，前 {skipped} 行之后的全部假设投票，该行数事先确定"
    ),
    "cross-validation.mean": {
        "": "{folds} 个折模型在新数据上的平均错误率（即对每行随机抽一个模型的错误率）不超过 {value:percent}；"
        "因此它们投票的错误率不超过 {vote:percent-up}。"
    },
    "cross-validation.mean-loss": {
        "": "{folds} 个折模型的平均值在新数据上的平均绝对误差（超出预测范围的目标按端点计）不超过 {value:out6}。"
    },
    "cross-validation.baseline": {
        "lower": "对 {folds} 个折模型取平均，其在新数据上的错误率比总是预测该折之外最常见的类别至少低 {value:percent}。",
        "upper": "对 {folds} 个折模型取平均，其在新数据上的错误率比总是预测该折之外最常见的类别至多高 {value:percent}。",
    },
    "cross-validation.median": {
        "lower": "对 {folds} 个折模型取平均，其在新数据上的平均绝对误差比总是预测该折之外目标的中位数至少低 {value:out6}"
        f"（{_ENDS}）。",
        "upper": "对 {folds} 个折模型取平均，其在新数据上的平均绝对误差比总是预测该折之外目标的中位数至多高 {value:out6}"
        f"（{_ENDS}）。",
    },
    "knn.loo": _rate("{rows} 行轮流留出，{errors} 行答错；{k} 个近邻，邻数与距离事先确定"),
    "regression.rademacher": _mean_loss("训练行，权重的长度"),
    "conformal.coverage": _COMPARED
    | {
        "": "大小为 {value:up6} 的预测集（区间：预测值加减该大小；分类：得分与最高分之差不超过它的类别）"
        "至少包含 {coverage:percent-down} 的新数据的真值{choice}。"
    },
    "kmeans.risk": _distance(" {clusters} 个中心中最近者"),
    "projection.risk": _distance(" {components} 维仿射子空间"),
    "selective.risk": {
        "": "在它不拒绝的新行中，答错的至多占 {value:percent}（{rows} 个留出行中判定了 {decided} 行）；"
        "这对可能要求的每个比例都成立，因此该比例可以是在这些行上选的。"
    },
    "selective.fixed": {
        "": "在它不拒绝的新行中，答错的至多占 {value:percent}"
        "（判定的 {decided} 个留出行中答错 {wrong} 行，留出行共 {rows} 行）；它所要求的比例在看到这些行之前就已确定。"
    },
    "cost.chosen": (
        _COST := {
            "": "新数据上每次决定的平均代价不超过 {value:up6}（Chernoff 界，{how}）。",
            "held": "{rows} 个留出行",
            "chosen": "{rows} 行中未用于拟合的 {held} 行，在其上从 {options} 个方案中选了一个，已为此作校正",
        }
    ),
    "cost.holdout": _COST,
    "calibration.error": {
        "": "新数据上的期望校准误差不超过 {value:up}：预测概率与实际频率之差，在概率的 {bins} 个区间上的平均"
        "（经验 Bernstein 界，{rows} 个留出行）。"
    },
    "output-code.bits": _rate("{rows} 个留出行中有 {wrong} 个错误的比特，{bits} 个中可纠正 {corrected} 个"),
    "hmm.holdout": {
        "": "新序列上 -ln p / 长度 的平均值（截断于 [{low:g}, {high:g}]）不超过 {bound:up4} 奈特"
        "（下注法，{sequences} 个留出序列，其中 {repeated} 个与前面的某个几乎重复）。"
    },
    "teacher.disagreement": {
        "": "新数据上的错误率不超过 {value:percent}：教师模型的不超过 {teacher:percent-up}"
        "（在它没有见过的 {kept} 行上答错 {errors} 行），两者在新数据上至多有 {difference:percent-up} 不同"
        "（两者都没有见过的 {unlabelled} 个无标签行中 {differ} 行不同，其中 {repeated} 行与某个有标签的行或另一行几乎重复）。"
    },
    "holdout.baseline": {
        "upper": f"新数据上的错误率比“{_BASELINE}”至多高 {{value:percent}}（{_ALONE}）。",
        "lower": f"新数据上的错误率比“{_BASELINE}”至少低 {{value:percent}}（{_ALONE}）。",
    },
    "holdout.baseline-better": {
        "": f"新数据上，模型比“{_BASELINE}”错得少：在两者只有一个答错的行中，模型答错的至多占 {{value:percent}}"
        "（此类留出行共 {both} 行，其中模型错的 {alone} 行）。"
    },
    "holdout.f1": {
        "": "新数据上{which} F1 不低于 {value:out4}（{rows} 个留出行）。",
        "one": "第 {label} 类的",
        "all": "模型认识的各类同等看待的",
    },
    "holdout.balanced": {
        "": "模型认识的各类同等看待时{more}，新数据上的错误率不超过 {value:percent}（{rows} 个留出行）。",
        "others": "（其余各类，即这些行中的 {others} 行，合为一类，全算错）",
    },
    "holdout.median": {
        "upper": "新数据上的平均绝对误差（误差以 {clip:g} 为上限）比总是预测训练行的中位数 {constant:.6g} 至多高 "
        "{value:up6}（{rows} 个留出行，成对比较）。",
        "lower": "新数据上的平均绝对误差（误差以 {clip:g} 为上限）比总是预测训练行的中位数 {constant:.6g} 至少低 "
        "{value:out6}（{rows} 个留出行，成对比较）。",
    },
    "holdout.groups": {
        "": f"新组内错误比例的平均值不超过 {{value:percent}}（{_GROUPS}）。",
        "loss": f"新组内平均绝对误差（误差以 {{clip:g}} 为上限）的平均值不超过 {{value:up6}}（{_GROUPS}）。",
    },
    "holdout.groups-baseline": {
        "upper": f"新组内{{what}}的平均值比总是预测{{prediction}}至多高 {{bound}}（{_GROUPS}）。",
        "lower": f"新组内{{what}}的平均值比总是预测{{prediction}}至少低 {{bound}}（{_GROUPS}）。",
        "errors": "错误比例",
        "loss": "平均绝对误差（误差以 {clip:g} 为上限）",
        "mode": "训练行中最常见的类别",
        "median": "训练行的中位数 {constant:.6g}",
        "share": "{value:percent}",
        "number": "{value:out6}",
    },
}
