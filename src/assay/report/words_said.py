"""Sentences that come from other rooms: the pattern with its blanks, what an English page says instead if it is
something else, and what a Chinese page says. A pattern that ends in $ stands at the end of its text."""

SAID: list[tuple[str, str, str]] = [
    # why a model was chosen
    (
        "{name} is chosen: of {n} learners tried on the {rows} training rows its {metric} in cross-validation ({value}) was the best, or level with the best.",
        "",
        "选中 {name}：在 {rows} 个训练行上试过 {n} 个学习器，它在交叉验证中的{metric}（{value}）最好，或与最好的不相上下。",
    ),
    (
        "No model is better than always answering {rival}, whose {metric} on the {rows} training rows is {base}: {name} is the best of {n} learners tried, with {value} in cross-validation.",
        "",
        "没有模型胜过总是回答“{rival}”（它在 {rows} 个训练行上的{metric}为 {base}）：试过的 {n} 个学习器中 {name} 最好，交叉验证中为 {value}。",
    ),
    (
        "{name} is chosen: of {n} learners tried on the {rows} training rows its {metric} in cross-validation was {value}; {best} had {other}, and could not be fitted to all training rows and certified in time.",
        "",
        "选中 {name}：在 {rows} 个训练行上试过 {n} 个学习器，它在交叉验证中的{metric}为 {value}；{best} 为 {other}，但来不及用全部训练行拟合并认证。",
    ),
    (
        "it is proved to rank rows better than chance, which has an area of one half.",
        "",
        "已证明它的排序胜过随机（随机的面积为二分之一）。",
    ),
    (
        "it is not proved to rank rows better than chance, which has an area of one half.",
        "",
        "没有证明它的排序胜过随机（随机的面积为二分之一）。",
    ),
    (
        "Nothing is proved about its error on new data: there are too few {units} held out.",
        "",
        "关于它在新数据上的误差，没有证明任何结论：留出的{units}太少。",
    ),
    (
        "Nothing is proved about its error on new data: there are too few rows.",
        "",
        "关于它在新数据上的误差，没有证明任何结论：行数太少。",
    ),
    (
        "On new data like these it errs in at most {bound} of cases, with {sure} confidence;",
        "",
        "在同类的新数据上，它至多答错 {bound}，置信度 {sure}；",
    ),
    (
        "On new data like these its mean absolute error (each counted up to {clip}) is at most {bound}, with {sure} confidence;",
        "",
        "在同类的新数据上，它的平均绝对误差（每个误差以 {clip} 为上限）不超过 {bound}，置信度 {sure}；",
    ),
    (
        "In new groups like these, on average, it errs in at most {bound} of cases, with {sure} confidence;",
        "",
        "在同类的新分组上，它平均至多答错 {bound}，置信度 {sure}；",
    ),
    (
        "In new groups like these, on average, its mean absolute error (each counted up to {clip}) is at most {bound}, with {sure} confidence;",
        "",
        "在同类的新分组上，它的平均绝对误差（每个误差以 {clip} 为上限）不超过 {bound}，置信度 {sure}；",
    ),
    (
        "it is proved to beat always answering {rival}, by at least {by}.",
        "",
        "已证明它胜过总是回答“{rival}”，至少好 {by}。",
    ),
    (
        "it is proved to beat always answering {rival}; by how much is not.",
        "",
        "已证明它胜过总是回答“{rival}”；好多少未能证明。",
    ),
    (
        "it is not proved to beat always answering {rival} ({shown} on the rows held out): more rows may show it.",
        "",
        "没有证明它胜过总是回答“{rival}”（留出的行上为 {shown}）：更多的行也许能证明。",
    ),
    (
        "always answering {rival} does as well ({shown} on the rows held out): this model is worth nothing yet.",
        "",
        "总是回答“{rival}”也一样好（留出的行上为 {shown}）：这个模型目前没有价值。",
    ),
    # a study by folds
    (
        "The model is the {what} of {n} models ({kinds}); each was chosen and fitted without one of {parts} parts of the {rows} rows and judged on it, so that every row served for both.",
        "",
        "模型是 {n} 个模型（{kinds}）的{what}；{rows} 行分成 {parts} 份，每个模型都在不用其中一份的情况下选出并拟合，再在这一份上评判，因此每一行都两用。",
    ),
    (
        "On new data like these one of them errs in at most {mean} of cases on average, and their vote in at most {bound}, with {sure} confidence;",
        "",
        "在同类的新数据上，其中一个平均至多答错 {mean}，它们的投票至多答错 {bound}，置信度 {sure}；",
    ),
    (
        "On new data like these its mean absolute error (targets counted within {low} to {high}) is at most {bound}, with {sure} confidence;",
        "",
        "在同类的新数据上，它的平均绝对误差（目标值按 {low} 至 {high} 的范围计）不超过 {bound}，置信度 {sure}；",
    ),
    (
        "on average they are proved to beat always answering the commonest class outside each fold, by at least {by}.",
        "",
        "已证明它们平均而言胜过总是回答各折之外最常见的类别，至少好 {by}。",
    ),
    (
        "on average they are not proved to beat always answering the commonest class outside each fold ({shown}): more rows may show it.",
        "",
        "没有证明它们平均而言胜过总是回答各折之外最常见的类别（{shown}）：更多的行也许能证明。",
    ),
    (
        "on average these models, targets counted within the range outside, are proved to beat always answering the median outside each fold, by at least {by}.",
        "",
        "已证明这些模型平均而言（目标按各折之外的范围计）胜过总是回答各折之外的中位数，至少好 {by}。",
    ),
    (
        "on average these models, targets counted within the range outside, are not proved to beat always answering the median outside each fold ({shown}): more rows may show it.",
        "",
        "没有证明这些模型平均而言（目标按各折之外的范围计）胜过总是回答各折之外的中位数（{shown}）：更多的行也许能证明。",
    ),
    (
        "always answering the commonest class outside each fold does as well ({shown}): this model is worth nothing yet.",
        "",
        "总是回答各折之外最常见的类别也一样好（{shown}）：这个模型目前没有价值。",
    ),
    (
        "always answering the median outside each fold does as well ({shown}): this model is worth nothing yet.",
        "",
        "总是回答各折之外的中位数也一样好（{shown}）：这个模型目前没有价值。",
    ),
    (
        "Fold {k} of {n}: a model is chosen and fitted without it.",
        "",
        "第 {k} 折，共 {n} 折：在不用它的情况下选出并拟合一个模型。",
    ),
    (
        "{copies} of {rows} rows have the same columns as a row of another fold; if they are copies rather than coincidences, the errors measured are too small: remove them.",
        "",
        "{rows} 行中有 {copies} 行与另一折的某行各列相同；如果它们是副本而不是巧合，测得的误差就偏小：请删去它们。",
    ),
    (
        "--clip is for --certify holdout; with folds, targets are counted within the range outside.",
        "with folds, targets are counted within the range that they have outside the fold: leave the largest error that counts empty.",
        "选“折”时，目标值按它们在该折之外的范围计入：请把计入的最大误差留空。",
    ),
    (
        "{n} folds of {rows} rows: there must be at least 2, and 2 rows for each.",
        "",
        "{rows} 行不能分成 {n} 折：至少要有 2 折，每折 2 行。",
    ),
    (
        "the rows outside fold {k} have one class only; learning needs two.",
        "",
        "第 {k} 折之外的行只有一个类别；学习需要两个。",
    ),
    (
        "the targets outside the folds hardly differ: there is nothing to learn.",
        "",
        "各折之外的目标值几乎没有差别：没有可学的东西。",
    ),
    (
        "a model was fitted to every row of this table (--certify folds); compare on other rows.",
        "one of the models was fitted to every row of this table (folds), so that no rows are left to compare them on.",
        "其中一个模型用了这张表的每一行来拟合（折），没有剩下可用来比较的行。",
    ),
    ("The checker has no predictor for the numbers of a fold's model.", "", "检查器没有某折模型的数值预测器。"),
    ("Folds of {n} rows are too small for {k} limits.", "", "每折 {n} 行太少，不足以给出 {k} 个界。"),
    # notes of a study
    (
        "These hold-out rows, or the table that they are from, have been looked at {before} before.",
        "",
        "这些留出行或它们所在的表此前已被看过 {before}。",
    ),
    (
        "If anything was changed after looking, the bound is not valid: hold out new rows, or split them in advance (--looks).",
        "If anything was changed after looking, the bound is not valid: hold out new rows.",
        "如果看过之后作了任何改动，该上界就无效：请留出新的行。",
    ),
    (
        "This look is certified at a failure probability of {own}, so that all looks at analyses that were fixed before the first hold together with {sure} % confidence.",
        "",
        "这一次按失败概率 {own} 认证，因此在第一次查看之前就已确定的所有分析同时成立，置信度 {sure} %。",
    ),
    (
        "This is look {k} at these rows: if anything was changed after an earlier one, the bound is not valid.",
        "",
        "这是第 {k} 次查看这些行：如果在此前某次之后作了任何改动，该上界就无效。",
    ),
    (
        "This is look {k} of {n}: its hold-out rows have not been opened before.",
        "",
        "这是 {n} 次查看中的第 {k} 次：它的留出行此前没有打开过。",
    ),
    (
        "How often these hold-out rows were looked at is not known: the ledger {path} cannot be used ({why}). ASSAY_LOOKS names another place, or is off.",
        "",
        "这些留出行被看过多少次不得而知：记录 {path} 无法使用（{why}）。可用 ASSAY_LOOKS 指定别处或关闭。",
    ),
    (
        "{name} has {n} whole values and is read as classes; --task regress changes that.",
        "{name} has {n} whole values and is read as classes.",
        "{name} 有 {n} 个整数值，按类别处理。",
    ),
    (
        "{name} has {n} whole values and is read as numbers; --task classify changes that.",
        "{name} has {n} whole values and is read as numbers; give it the type “name” to tell classes apart.",
        "{name} 有 {n} 个整数值，按数值处理；若要按类别处理，请把它的类型改为“名称”。",
    ),
    (
        "{n} of {rows} hold-out rows have a class that no training row has ({strange}): each counts as an error, as such rows will among new ones.",
        "",
        "{rows} 个留出行中有 {n} 行的类别在训练行中没有（{strange}）：每一行都按错误计，新数据中这样的行也是如此。",
    ),
    (
        "{n} of {rows} rows have a target that is no number; they are left out.",
        "",
        "{rows} 行中有 {n} 行的目标不是数，不予采用。",
    ),
    (
        "{errors} rows wrong for it alone against {against} do not show that it errs less often.",
        "",
        "仅它答错的 {errors} 行对仅对方答错的 {against} 行，不足以说明它出错更少。",
    ),
    (
        "Only {share} % of the rows are {label}: the error rate hardly sees them; --metric balanced, f1 or auc, or a cost matrix, may be what you want.",
        "Only {share} % of the rows are {label}: the share of wrong answers hardly sees them; another choice of what counts, such as classes counted alike or F1, may be what you want.",
        "只有 {share} % 的行是 {label}：错误率几乎看不到它们；换一种评价标准，如各类同等计算的错误率或 F1，也许更合适。",
    ),
    (
        "{copies} of {held} hold-out rows have the same columns as a training row; if they are copies rather than coincidences, the errors measured are too small: remove them, or use --group.",
        "{copies} of {held} hold-out rows have the same columns as a training row; if they are copies rather than coincidences, the errors measured are too small: remove them.",
        "{held} 个留出行中有 {copies} 行与某个训练行各列相同；如果它们是副本而不是巧合，测得的误差就偏小：请删去它们。",
    ),
    (
        "{n} of {rows} rows have no value of the target {name}; they are left out.",
        "",
        "{rows} 行中有 {n} 行没有目标 {name} 的值，不予采用。",
    ),
    ("Column {name} is left out:", "", "不采用列 {name}："),
    ("Column {name} is left out of the models that are given such rows:", "", "用到这些行的折模型不采用列 {name}："),
    (
        "it has numbers beyond 1e150, or nearer to zero than 1e-150, with which no certificate holds; empty these cells, or multiply the column by a constant.",
        "",
        "它含有绝对值大于 1e150、或不为零而小于 1e-150 的数，任何证书都无法容纳；请清空这些单元格，或把该列乘以一个常数。",
    ),
    (
        "Column {name} has {n} numbers beyond 1e150, or nearer to zero than 1e-150, in hold-out rows; the former count as missing, the latter as 0.",
        "",
        "列 {name} 的留出行中有 {n} 个绝对值大于 1e150、或不为零而小于 1e-150 的数；前者按缺失计，后者按 0 计。",
    ),
    ("it has no value in any row.", "", "它在每一行都没有值。"),
    ("it has the same value in every row.", "", "它在每一行的值都相同。"),
    ("it names each row, so it says nothing about new ones.", "", "它给每一行一个名字，对新的行没有意义。"),
    (
        "it has no name and counts the rows; a frame's index was written with it.",
        "",
        "它没有名称，只是行的编号；想必是数据框的索引被一同写出。",
    ),
    ("it was dropped.", "You left it out.", "你去掉了它。"),
    # lines of the leaderboard
    ("always the median, {value}$", "", "总是回答中位数 {value}"),
    ("always {label}$", "", "总是回答 {label}"),
    (
        "it would take long for {n} training rows; name it with --learners and --force to try it.",
        "it would take long for {n} training rows.",
        "训练行有 {n} 个，它会花很长时间。",
    ),
    ("it was stopped after {n} s.", "", "它在 {n} 秒后被停止。"),
    ("its process ended, most likely for want of memory.", "", "它的进程结束了，多半是内存不足。"),
    ("it could not be fitted to all training rows and certified in time.", "", "来不及用全部训练行拟合并认证它。"),
    (
        "the loss was still falling by more than tol={tol} after {n} epochs. Raise max_iter or tol.",
        "",
        "{n} 个周期之后损失仍在下降，每周期超过 tol={tol}；可增大 max_iter 或 tol。",
    ),
    (
        "L-BFGS stopped after {n} iterations with a slope above tol={tol}. Raise max_iter or tol.",
        "",
        "L-BFGS 在 {n} 次迭代后停止，斜率仍高于 tol={tol}；可增大 max_iter 或 tol。",
    ),
    (
        "no hyperplane separates the classes; the hyperplane of least total violation is kept.",
        "",
        "没有超平面能把两类分开；保留了总违反量最小的超平面。",
    ),
    (
        "no hyperplane separates {which} from the rest; the hyperplane of least total violation is kept.",
        "",
        "没有超平面能把 {which} 与其余各类分开；保留了总违反量最小的超平面。",
    ),
    (
        "still making mistakes after {n} epochs and {k} updates; either no hyperplane separates the classes or its margin is small. The last one is kept. Raise max_iter, or use LogisticRegression, which does not need separable classes.",
        "",
        "{n} 个周期、{k} 次更新之后仍有错误：要么没有超平面能把各类分开，要么间隔很小。保留了最后一个超平面。可增大 max_iter，或改用不要求可分的 LogisticRegression。",
    ),
    (
        "still making mistakes after {n} epochs and {k} updates; the last function is kept. Raise max_iter, choose a kernel that separates the classes (a larger gamma), or use KernelLogisticRegression, which does not need separable classes.",
        "",
        "{n} 个周期、{k} 次更新之后仍有错误；保留了最后一个函数。可增大 max_iter，选用能分开各类的核（更大的 gamma），或改用不要求可分的 KernelLogisticRegression。",
    ),
    (
        "within classes the rows vary in {k} of {n} directions only, so the scatter matrix has no inverse; its pseudo-inverse was used, which ignores the other directions. Drop dependent columns, or set shrinkage.",
        "",
        "类内的行只在 {n} 个方向中的 {k} 个上变化，散布矩阵不可逆；已改用伪逆，它忽略其余方向。可去掉相关的列，或设置 shrinkage。",
    ),
    (
        "the margin is proved to {a} of the largest, not to the {b} asked for; raise n_estimators or tol.",
        "",
        "已证明间隔达到最大值的 {a}，未达到要求的 {b}；可增大 n_estimators 或 tol。",
    ),
    (
        "{n} units leave a mean squared residual of {value}; raise max_units, or set early_stopping to end the growth by rows kept out.",
        "",
        "{n} 个单元之后均方残差为 {value}；可增大 max_units，或设置 early_stopping，用留出的行决定何时停止增长。",
    ),
    ("y contains no unlabeled samples.", "there are no rows without labels to learn from.", "没有未标记的行可供学习。"),
    # reasons of claims that are not made
    (
        "The encoding was fitted to the training rows, so the class was not fixed in advance.",
        "",
        "编码是用训练行拟合的，所以假设类没有事先确定。",
    ),
    (
        "A free intercept is not held by the penalty: the gap does not bound what a row left out changes.",
        "",
        "截距不受惩罚项约束：由间隙不能界定去掉一行会带来多大改变。",
    ),
    ("It is about rows without gaps.", "", "它只适用于没有缺失值的行。"),
    ("Fisher's ratio belongs to classes that share one covariance.", "", "Fisher 比属于各类共用一个协方差的情形。"),
    (
        "The covariance of a class is singular or nearly so; regularise it more.",
        "",
        "某一类的协方差奇异或接近奇异；需要更强的正则化。",
    ),
    (
        "The scatter within classes is singular or nearly so; set shrinkage.",
        "",
        "类内散布矩阵奇异或接近奇异；需设置 shrinkage。",
    ),
    (
        "With more than two classes SAMME's exponential loss does not bound the training error.",
        "",
        "多于两类时，SAMME 的指数损失不能界定训练误差。",
    ),
    (
        "Margins of votes for more than two classes are not covered by the theorem.",
        "",
        "该定理不包括多于两类的投票间隔。",
    ),
    ("Row weights: {rest}", "", "行带有权重，该结论不适用。"),
    ("Random signs stand for two classes; there are more.", "", "随机符号只代表两类；这里的类别更多。"),
    ("The code of trees has no words for splits of nominal columns.", "", "树的编码不包括按名称列的划分。"),
    (
        "Stumps that compare with a threshold do not include splits of nominal columns.",
        "",
        "与阈值比较的树桩不包括按名称列的划分。",
    ),
    ("The tree splits nominal columns or has missing values.", "", "这棵树按名称列划分，或有缺失值。"),
    (
        "Scores are decoded, not bits, or the code tells classes apart by scores alone.",
        "",
        "解码用的是得分而不是比特，或者编码只凭得分区分类别。",
    ),
    ("With {k} wrong bits in {n} rows the bound is {value}", "", "{n} 行中有 {k} 个错误的比特，界为 {value}"),
    (
        "The function does not separate the classes: no margin bounds the updates.",
        "",
        "该函数没有把各类分开：没有间隔可以界定更新次数。",
    ),
    (
        "The hyperplane does not separate the classes: there is no margin to bound the updates by.",
        "",
        "该超平面没有把各类分开：没有间隔可以界定更新次数。",
    ),
    (
        "The classes were learnt together; the bound is about one hyperplane.",
        "",
        "各类是一起学习的；该界只关于单个超平面。",
    ),
    ("More than {n} updates were made; their sequence was not kept.", "", "更新超过 {n} 次；没有保存其次序。"),
    (
        "One class against the rest: each hyperplane minimises a problem of its own.",
        "",
        "一类对其余：每个超平面各自最小化自己的问题。",
    ),
    (
        "The problem with nu has no C of its own; SVC at C = 1/rho is the same machine.",
        "",
        "带 nu 的问题没有自己的 C；C = 1/rho 的 SVC 是同一台机器。",
    ),
    (
        "A hard margin has no losses to weigh; its optimality is the margin from both sides.",
        "",
        "硬间隔没有损失可衡量；它的最优性由间隔的上下界给出。",
    ),
    (
        "The kernel is a matrix, function or object which the checker does not have.",
        "",
        "核是检查器没有的矩阵、函数或对象。",
    ),
    (
        "The gap is stated for hyperplanes that have a problem of their own each.",
        "",
        "间隙只对各有自己问题的超平面给出。",
    ),
    ("The gap is stated for one target.", "", "间隙只对单个目标给出。"),
    (
        "The penalty does not hold a free intercept, which one row can move far.",
        "",
        "截距不受惩罚项约束，一行就能使它移动很远。",
    ),
    ("The dual vector misses its sum by more than the box allows.", "", "对偶向量的和超出了箱约束允许的偏差。"),
    ("No exact proof was found that the classes cannot be separated.", "", "没有找到各类不可分的精确证明。"),
    (
        "Deciding separability exactly is done up to {n} rows and {k} columns.",
        "",
        "精确判定可分性只做到 {n} 行、{k} 列。",
    ),
    (
        "With this link the objective is not convex: a small gradient does not bound its minimum.",
        "",
        "用这个联结函数时目标不是凸的：梯度小并不能界定最小值。",
    ),
    ("With an L1 penalty the gap is stated for two classes.", "", "带 L1 惩罚时，间隙只对两类给出。"),
    (
        "The claim of this loss is about a numeric target, not about labels.",
        "",
        "这种损失的声明关于数值目标，而不是标签。",
    ),
    ("It needs more than {k} training rows.", "", "需要多于 {k} 个训练行。"),
    (
        "alpha is too small for leave-one-out errors to be computed accurately.",
        "",
        "alpha 太小，无法准确计算留一误差。",
    ),
    (
        "Checking it takes the third power of the rows; it is told up to {n}.",
        "",
        "检查它的代价与行数的三次方成正比；只做到 {n} 行。",
    ),
    (
        "EM rests on rows without labels, which a certificate is not about.",
        "",
        "EM 依赖没有标签的行，而证书不涉及它们。",
    ),
    (
        "The weights were learnt from models of folds, which are not kept.",
        "",
        "权重是由各折的模型学得的，这些模型没有保存。",
    ),
    ("Members differ so little that they have equal weights.", "", "各成员相差太小，权重相等。"),
    (
        "These are not the rows of `fit`, or the checker cannot read a member.",
        "",
        "这些不是拟合所用的行，或者检查器不能读某个成员。",
    ),
    ("These are not the rows of `fit`.", "", "这些不是拟合所用的行。"),
    ("These are not the rows of `fit`, in order.", "", "这些不是按次序的拟合所用的行。"),
    (
        "Every forest saw every row, or these are other rows; lower max_samples.",
        "",
        "每个森林都见过每一行，或者这些是别的行；可减小 max_samples。",
    ),
    ("Some weights are not finite.", "", "有些权重不是有限的数。"),
    ("The checker factorises at most {n} features; there are {q}.", "", "检查器至多分解 {n} 个特征；这里有 {q} 个。"),
    ("The class probabilities are not the logistic function of the scores.", "", "类别概率不是得分的逻辑斯谛函数。"),
    (
        "{n} rows are too few for {space}: the bound would be above one half whatever the labels.",
        "",
        "对 {space} 来说 {n} 行太少：无论标签如何，界都会超过二分之一。",
    ),
    ("{n} rows are too few for it, whatever the margins.", "", "无论间隔如何，{n} 行都太少。"),
    ("More than two classes: noise in the weights has no closed form.", "", "多于两类：权重中的噪声没有封闭形式。"),
    (
        "The error of a regression has no range: pass clip=, fixed in advance.",
        "The error of a regression has no range unless the largest error that counts is fixed in advance.",
        "回归误差没有范围，除非事先确定计入的最大误差。",
    ),
    (
        "The error of a regression has no range: pass clip=, fixed before looking at the data.",
        "The error of a regression has no range unless the largest error that counts is fixed in advance.",
        "回归误差没有范围，除非事先确定计入的最大误差。",
    ),
    (
        "No hold-out rows were given; they usually give the tightest bound.",
        "",
        "没有给出留出行；它们通常给出最紧的界。",
    ),
    # claims that claims_zh does not build
    (
        "The training objective of class number {k} against the rest ({parts}) is at most {gap} above its minimum.",
        "",
        "第 {k} 类对其余各类的训练目标函数（{parts}）至多比其最小值高 {gap}。",
    ),
    (
        "The training objective of pair {k} of classes ({parts}) is at most {gap} above its minimum.",
        "",
        "第 {k} 对类别的训练目标函数（{parts}）至多比其最小值高 {gap}。",
    ),
    (
        "The training objective ({parts}) is at most {gap} above its minimum.",
        "",
        "训练目标函数（{parts}）至多比其最小值高 {gap}。",
    ),
    (
        "The largest KKT violation of pair {k} of classes is at most {value}, in units of the margin.",
        "",
        "第 {k} 对类别的最大 KKT 违反量不超过 {value}（以间隔为单位）。",
    ),
    (
        "The largest KKT violation is at most {value}, in units of the margin.",
        "",
        "最大 KKT 违反量不超过 {value}（以间隔为单位）。",
    ),
    (
        "The counts that the probabilities are made of are exactly those of the {n} training rows, and so of maximum likelihood, smoothed as declared; the class probabilities are the shares of the classes.",
        "",
        "构成概率的计数正是 {n} 个训练行的计数，因此是极大似然估计，并按声明作了平滑；类别概率是各类的比例。",
    ),
    (
        "Means and variances (divisor n) of the columns in each class are those of the {n} training rows, what is added declared: up to {value}, in units of standard deviations and variances.",
        "",
        "各类中各列的均值和方差（除以 n）正是 {n} 个训练行的，所加之量按声明：误差不超过 {value}（以标准差和方差为单位）。",
    ),
    (
        "For {m} of the rows, the {k} nearest other rows are exactly those listed, the first of rows at the same distance.",
        "",
        "对其中 {m} 行，列出的正是与之最近的 {k} 个其他行（距离相同时取在前的）。",
    ),
    (
        "For at most {m} of the {n} rows their own label has no majority among the {k} nearest other rows.",
        "",
        "在 {n} 行中，至多 {m} 行自己的标签在最近的 {k} 个其他行中不占多数。",
    ),
    ("The tables hold exactly the counts of the {n} training rows.", "", "各表保存的正是 {n} 个训练行的计数。"),
    (
        "The first direction reaches the largest Fisher ratio up to {value}: no other separates the class means better.",
        "",
        "第一个方向达到最大的 Fisher 比，误差不超过 {value}：没有别的方向能把类均值分得更开。",
    ),
    (
        "The scores are those of Gaussian classes with {which}, fitted to the rows by maximum likelihood: means and covariances are right to {a} and scores near the centre to {b}, columns in units of their spread.",
        "",
        "得分正是用极大似然拟合的{which}的高斯类的得分：均值和协方差精确到 {a}，中心附近的得分精确到 {b}（各列以其离散程度为单位）。",
    ),
    (
        "The training error is at most {value}, the product of the {n} normalisers of boosting.",
        "",
        "训练误差不超过 {value}，即提升法 {n} 个归一化因子之积。",
    ),
    (
        "No weighted vote of stumps gives the training rows a margin above {value} (soft: a row counts at most {most}).",
        "",
        "没有树桩的加权投票能给训练行超过 {value} 的间隔（软间隔：每行至多计 {most}）。",
    ),
    (
        "No weighted vote of stumps gives the training rows a margin above {value}.",
        "",
        "没有树桩的加权投票能给训练行超过 {value} 的间隔。",
    ),
    (
        "The vote gives the training rows a margin of at least {value} (soft: a row counts at most {most}), in shares of its weight.",
        "",
        "该投票给训练行的间隔不小于 {value}（软间隔：每行至多计 {most}；以权重的份额计）。",
    ),
    (
        "No hyperplane separates the classes: a few listed rows already cannot be separated.",
        "",
        "没有超平面能把两类分开：列出的几行就已不可分。",
    ),
    (
        "No hyperplane separates class number {k} from the others: a few listed rows already cannot be separated.",
        "",
        "没有超平面能把第 {k} 类与其他类分开：列出的几行就已不可分。",
    ),
    (
        "Some hyperplane separates class number {k} from the others with a margin of at least {value}.",
        "",
        "有超平面把第 {k} 类与其他类分开，间隔不小于 {value}。",
    ),
    (
        "Some hyperplane separates the classes with a margin of at least {value}.",
        "",
        "有超平面把两类分开，间隔不小于 {value}。",
    ),
    (
        "To separate class number {k} from the others the perceptron made {n} updates, within the bound (R / margin)^2 <= {most} for a separator of margin {margin}.",
        "",
        "为把第 {k} 类与其他类分开，感知机作了 {n} 次更新，不超过界 (R / 间隔)^2 <= {most}（分离超平面的间隔为 {margin}）。",
    ),
    (
        "The perceptron made {n} updates, within the bound (R / margin)^2 <= {most} for a separator of margin {margin}.",
        "",
        "感知机作了 {n} 次更新，不超过界 (R / 间隔)^2 <= {most}（分离超平面的间隔为 {margin}）。",
    ),
    (
        "The gradient of the training objective (mean {loss}, decay = {decay}) by all weights has at most the length {value}; where it is zero the objective is level, which need not be its minimum.",
        "",
        "训练目标函数（平均{loss}，权重衰减 {decay}）对全部权重的梯度长度不超过 {value}；梯度为零处目标函数平坦，但不一定是最小值。",
    ),
    (
        "No subtree of the grown tree ({n} leaves) has a {what} impurity plus {price} per leaf smaller by more than {value}.",
        "",
        "长成的树（{n} 个叶结点）的任何子树，其{what}不纯度加上每叶 {price} 之和，都不会再小 {value} 以上。",
    ),
    (
        "The mean cost of a decision on new data is at most {value} (Chernoff, {n} hold-out rows).",
        "",
        "新数据上每次决定的平均代价不超过 {value}（Chernoff 界，{n} 个留出行）。",
    ),
    (
        "The error rate on new data is at most {bound} ({wrong} wrong bits in {n} hold-out rows, {k} of {all} are corrected).",
        "",
        "新数据上的错误率不超过 {bound}（{n} 个留出行中有 {wrong} 个错误的比特，{all} 个中可纠正 {k} 个）。",
    ),
    (
        "On the {n} train rows the model makes between {a} and {b} errors.",
        "",
        "在 {n} 个训练行上，模型答错 {a} 到 {b} 行。",
    ),
    (
        "On the {n} holdout rows the model makes between {a} and {b} errors.",
        "",
        "在 {n} 个留出行上，模型答错 {a} 到 {b} 行。",
    ),
    (
        "The mean absolute error on new data, errors clipped at {clip}, exceeds that of always answering with the median of the training rows, {median}, by at most {value} ({n} hold-out rows, paired).",
        "",
        "新数据上的平均绝对误差（误差以 {clip} 为上限）比总是回答训练行的中位数 {median} 至多高 {value}（{n} 个留出行，成对比较）。",
    ),
    (
        "The mean absolute error on new data, errors clipped at {clip}, is at least {value} below that of always answering with the median of the training rows, {median} ({n} hold-out rows, paired).",
        "",
        "新数据上的平均绝对误差（误差以 {clip} 为上限）比总是回答训练行的中位数 {median} 至少低 {value}（{n} 个留出行，成对比较）。",
    ),
    (
        "The mean squared leave-one-out error of the exact algorithm is at most {value}.",
        "",
        "精确算法的均方留一误差不超过 {value}。",
    ),
    (
        "No coefficients within distance {a} of these lower the {what} deviance by more than {b}.",
        "",
        "与这些系数距离不超过 {a} 的任何系数，都不能使 {what} 偏差再降低 {b} 以上。",
    ),
    (
        "There it is curved upwards, by at least {value} in scaled columns.",
        "",
        "在那里它向上弯曲，按缩放后的列至少为 {value}。",
    ),
    (
        "No other output weights of the same hidden units fit the {n} training rows better (half the mean squared error, penalty {penalty}) by more than {value}.",
        "",
        "对同样的隐藏单元，没有别的输出权重能把 {n} 个训练行拟合得再好 {value} 以上（均方误差的一半，惩罚 {penalty}）。",
    ),
    (
        "No other regressions of the numeric columns on their parents, of variances at least a millionth of the columns', fit the {n} training rows better by more than {value} nats, in log-likelihood.",
        "",
        "数值列对其父结点的任何其他回归（方差不小于该列的百万分之一），都不能使 {n} 个训练行的对数似然再提高 {value} 奈特以上。",
    ),
    (
        "No edge of the network can be added, deleted or reversed so that the score {a} x parameters - log-likelihood on the {n} training rows falls by more than {value} nats; a node may have {k} parents, {r} edges are required and {f} forbidden.",
        "",
        "增加、删除或反转网络的任何一条边，都不能使 {n} 个训练行上的评分（{a} × 参数个数 − 对数似然）再降低 {value} 奈特以上；每个结点至多 {k} 个父结点，{r} 条边必须有，{f} 条边不许有。",
    ),
    (
        "In the kernel's space no directions reach a sum of Fisher ratios (mu = {mu}) more than {value} above that of these.",
        "",
        "在核的空间中，没有方向能使 Fisher 比之和（mu = {mu}）比这些方向再高 {value} 以上。",
    ),
    (
        "The mixture of class number {k} ({what} covariances) is near a fixed point of EM with {added} added to each variance: an M step gains at most {gain} nats per row and moves means (in units of spread), covariances and weights (as shares) by at most {move}.",
        "",
        "第 {k} 类的混合模型（{what} 协方差）接近 EM 的不动点（每个方差加 {added}）：一次 M 步每行至多增益 {gain} 奈特，均值（以离散程度为单位）、协方差和权重（以份额计）至多移动 {move}。",
    ),
    (
        "No other weights of the same components of class number {k} fit the training rows better by more than {value} nats per row.",
        "",
        "对第 {k} 类的同样成分，没有别的权重能把训练行拟合得每行再好 {value} 奈特以上。",
    ),
    (
        "The gradient of the training objective (mean loss at the last step of {n} sequences, penalty {penalty}) by all weights has at most the length {value}; where it is zero the objective is level, which need not be its minimum.",
        "",
        "训练目标函数（{n} 个序列最后一步的平均损失，惩罚 {penalty}）对全部权重的梯度长度不超过 {value}；梯度为零处目标函数平坦，但不一定是最小值。",
    ),
    (
        "On the graph of Gaussian weights (gamma = {gamma}) of {n} rows, {m} of them labelled, taking the mean of its neighbours changes no entry of the distributions by more than {value}.",
        "",
        "在 {n} 行（其中 {m} 行有标签）的高斯权重图（gamma = {gamma}）上，取邻居的均值不会使分布的任何一项改变超过 {value}。",
    ),
    (
        "On the graph of Gaussian weights (gamma = {gamma}) of {n} rows, {m} of them labelled, spreading with alpha = {alpha} changes no entry of the distributions by more than {value}.",
        "",
        "在 {n} 行（其中 {m} 行有标签）的高斯权重图（gamma = {gamma}）上，以 alpha = {alpha} 传播不会使分布的任何一项改变超过 {value}。",
    ),
    # columns of a table
    (
        "--nominal {name} if its numbers are names.",
        "If its numbers are names, give it the type “name”.",
        "如果这些数字是名称，请把类型改为“名称”。",
    ),
    (
        "--nominal {name} if its values are names.",
        "If its values are names, give it the type “name”.",
        "如果这些值是名称，请把类型改为“名称”。",
    ),
    (
        "--drop {name} if it names the rows.",
        "If it names the rows, leave it out.",
        "如果它只是行的名字，请去掉这一列。",
    ),
    (
        "--ordered {name}=lowest,...,highest if its values have an order.",
        "If its values have an order, give it the type “ordered” and the order.",
        "如果这些值有次序，请把类型改为“有序”并给出顺序。",
    ),
    (
        "{n} cells that are no numbers are gaps$",
        "{n} cells that are no numbers are gaps.",
        "有 {n} 个单元格不是数，按缺失处理。",
    ),
    (
        "{n} cells that are no dates are gaps$",
        "{n} cells that are no dates are gaps.",
        "有 {n} 个单元格不是日期，按缺失处理。",
    ),
    # refusals
    ("{place} cannot be read as CSV: {why}$", "", "{place} 不能作为 CSV 读入：{why}"),
    (
        "{place} does not begin with a line of UTF-8 text; is it a CSV file?",
        "",
        "{place} 的开头不是一行 UTF-8 文字；它是 CSV 文件吗？",
    ),
    ("{place} is empty; its first line must name the columns.", "", "{place} 是空的；第一行必须是各列的名称。"),
    ("{place} cannot be read as Parquet ({why}).", "", "{place} 不能作为 Parquet 读入（{why}）。"),
    (
        "the table has {rows} rows and {columns} columns: there is not enough memory for so many cells; take fewer rows or columns.",
        "The table has {rows} rows and {columns} columns: there is not enough memory for so many cells; take fewer rows or columns.",
        "表格有 {rows} 行、{columns} 列：内存不够容纳这么多单元格；请减少行或列。",
    ),
    ("the table has no columns.", "The table has no columns.", "表格没有列。"),
    (
        "the table has no rows, only the columns {names}.",
        "The table has no rows, only the columns {names}.",
        "表格没有行，只有列 {names}。",
    ),
    (
        "column {i} has no name; give it one in the first line.",
        "Column {i} has no name; give it one in the first line.",
        "第 {i} 列没有名称；请在第一行给它一个。",
    ),
    (
        "two columns are called {name} (columns {i} and {j}); rename one.",
        "Two columns are called {name} (columns {i} and {j}); rename one.",
        "有两列都叫 {name}（第 {i} 列和第 {j} 列）；请改名。",
    ),
    (
        "column {name} has no value in any row; leave it out.",
        "Column {name} has no value in any row; leave it out.",
        "列 {name} 在每一行都没有值；请去掉它。",
    ),
    (
        "column {name} has an infinite value in row {row} (counted from 0); correct it.",
        "Column {name} has an infinite value in row {row} (counted from 0); correct it.",
        "列 {name} 在第 {row} 行（从 0 数起）的值是无穷大；请更正。",
    ),
    (
        "column {name} has {value} in row {row} (counted from 0), which is not among its levels {levels}; correct it or add the level.",
        "Column {name} has {value} in row {row} (counted from 0), which is not among its levels {levels}; correct it or add the level.",
        "列 {name} 在第 {row} 行（从 0 数起）的值是 {value}，不在给出的 {levels} 之中；请更正，或补上它。",
    ),
    (
        "column {name} holds bytes that are not UTF-8 text; save the file as UTF-8.",
        "Column {name} holds bytes that are not UTF-8 text; save the file as UTF-8.",
        "列 {name} 中有不是 UTF-8 文字的字节；请把文件存为 UTF-8。",
    ),
    (
        "the target {name} has no value in any row.",
        "The target {name} has no value in any row.",
        "目标 {name} 在每一行都没有值。",
    ),
    (
        "there is no column to learn from beside the target {name}.",
        "There is no column to learn from beside the target {name}.",
        "除目标 {name} 外没有可供学习的列。",
    ),
    ("there is no column to learn from.", "There is no column to learn from.", "没有可供学习的列。"),
    (
        "the training rows have one class only ({name}); learning needs two.",
        "The training rows have one class only ({name}); learning needs two.",
        "训练行只有一个类别（{name}）；学习需要两个。",
    ),
    (
        "--holdout {share} of {n} rows leaves too few rows to fit or to test on.",
        "{n} rows are too few to fit to some and to keep others aside.",
        "{n} 行太少，不够一部分用于拟合、另一部分留出。",
    ),
    (
        "no learner could be fitted and certified ({why}).",
        "No learner could be fitted and certified ({why}).",
        "没有学习器能被拟合并认证（{why}）。",
    ),
    (
        "{name} is not a learner for {task}; there are {listed}.",
        "",
        "{name} 不是适用于{task}的学习器；可用的有 {listed}。",
    ),
    (
        "there is no learner {name}; did you mean {other}?",
        "There is no learner {name}; did you mean {other}?",
        "没有名为 {name} 的学习器；是指 {other} 吗？",
    ),
    ("there is no learner {name}.", "There is no learner {name}.", "没有名为 {name} 的学习器。"),
    (
        "the column {name} needs a number; got {text}.",
        "The column {name} needs a number; got {text}.",
        "列 {name} 需要一个数；得到的是 {text}。",
    ),
    (
        "the column {name} needs a finite number; got {text}.",
        "The column {name} needs a finite number; got {text}.",
        "列 {name} 需要一个有限的数；得到的是 {text}。",
    ),
    ("{text} is not a value of the column {name}.", "", "{text} 不是列 {name} 的值。"),
    (
        "these two columns have too few rows with values and two classes.",
        "These two columns have too few rows with values and two classes.",
        "这两列中有值且分属两类的行太少。",
    ),
    (
        "There is not enough memory for this table; take fewer rows or columns.",
        "",
        "内存不够处理这张表；请减少行或列。",
    ),
    ("It took longer than {n} seconds and was ended.", "", "用时超过 {n} 秒，已被终止。"),
    (
        "The process that does the work ended: there was not enough memory, or it was stopped.",
        "",
        "执行工作的进程结束了：内存不足，或被停止。",
    ),
    ("The process that does the work ended without an answer.", "", "执行工作的进程没有给出回答就结束了。"),
    ("Too much is asked for at once; wait a little.", "", "同时提出的请求太多；请稍候。"),
    (
        "{n} studies are running: stop one of them, or wait for its end.",
        "",
        "有 {n} 个学习任务正在运行：请停止一个，或等它结束。",
    ),
    ("There is no such table.", "", "没有这张表。"),
    ("There is no such study.", "", "没有这个学习任务。"),
    ("There is no such file.", "", "没有这个文件。"),
    ("There is no such algorithm.", "", "没有这个算法。"),
    ("There is no such page.", "", "没有这个页面。"),
    ("The page takes no such request.", "", "页面不接受这种请求。"),
    ("Refused: this is not a form.", "", "已拒绝：这不是表单。"),
    (
        "Refused: the form is not of this session. Load the page again.",
        "",
        "已拒绝：表单不属于本次会话。请重新载入页面。",
    ),
    ("the model has no certificate.", "The model has no certificate.", "模型没有证书。"),
    # comparisons and plans
    (
        "The first model is proved better: the {what} lies between {low} and {high} with {sure} confidence, if these rows are independent draws from the source of new ones.",
        "",
        "已证明第一个模型更好：{what}在 {low} 与 {high} 之间，置信度 {sure}，前提是这些行独立地抽自新数据的来源。",
    ),
    (
        "The second model is proved better: the {what} lies between {low} and {high} with {sure} confidence, if these rows are independent draws from the source of new ones.",
        "",
        "已证明第二个模型更好：{what}在 {low} 与 {high} 之间，置信度 {sure}，前提是这些行独立地抽自新数据的来源。",
    ),
    (
        "Neither model is proved better: the {what} lies between {low} and {high} with {sure} confidence, if these rows are independent draws from the source of new ones.",
        "",
        "没有证明哪个模型更好：{what}在 {low} 与 {high} 之间，置信度 {sure}，前提是这些行独立地抽自新数据的来源。",
    ),
    (
        "This is the table of the {which} model's certificate: its {n} hold-out rows are used, and that it was chosen on them among {cost} is paid for.",
        "",
        "这正是{which}模型的证书所说的表：用它的 {n} 个留出行，并已为在其上从 {cost} 个中挑选作了校正。",
    ),
    (
        "This is the table of the {which} model's certificate: its {n} hold-out rows are used.",
        "",
        "这正是{which}模型的证书所说的表：用它的 {n} 个留出行。",
    ),
    (
        "They had been looked at before the {which} model was made: if anything was changed after looking, this comparison is not valid; compare on new rows.",
        "",
        "在做出{which}模型之前，这些行已被看过：如果看过之后改动了什么，这个比较就无效；请在新行上比较。",
    ),
    (
        "the hold-out rows of the {which} model are those of groups, which are no independent draws; compare on new rows of which each is a draw by itself.",
        "",
        "{which}模型的留出行按分组抽取，不是独立抽取的；请在各自独立抽取的新行上比较。",
    ),
    (
        "That the {which} model was not fitted to any of these rows is assumed.",
        "",
        "假定{which}模型没有用这些行中的任何一行拟合。",
    ),
    ("VC dimension, any training error$", "", "VC 维，训练误差任意"),
    ("VC dimension, no training error$", "", "VC 维，训练误差为零"),
    ("growth function through Rademacher averages$", "", "经 Rademacher 平均的增长函数"),
    ("exact ghost sample$", "", "精确的虚拟样本"),
    ("claimed {sign} {a}, measured {b}$", "", "声明 {sign} {a}，实测 {b}"),
]

PHRASES = {
    "error rate": "错误率", "error rate with every class counted alike": "各类同等计算的错误率", "log-loss": "对数损失",
    "area under the ROC curve": "ROC 曲线下面积", "Brier score": "Brier 分数", "mean cost": "平均代价",
    "mean absolute error": "平均绝对误差", "root mean squared error": "均方根误差", "R^2": "R²",
    "rows": "行", "groups": "分组", "vote": "投票", "mean": "平均", "(?P<n>\\d+) times?": "{n} 次", "once": "一次", "the median, {value}": "中位数 {value}",
    "logistic loss": "逻辑斯谛损失", "multinomial logistic loss": "多项逻辑斯谛损失", "hinge loss": "合页损失",
    "squared-hinge loss": "平方合页损失", "squared loss": "平方损失", "epsilon-insensitive loss": "ε 不敏感损失",
    "log loss": "对数损失", "(?P<kind>L\\d) penalty {value}": "{kind} 惩罚 {value}", "free intercept": "截距不受惩罚",
    "no intercept": "无截距", "intercept penalised as coefficient of a column of {value}": "截距作为常数列 {value} 的系数受惩罚",
    "first": "第一个", "second": "第二个", "one covariance": "共用一个协方差", "a covariance each": "各有协方差",
    "gini": "基尼", "entropy": "熵", "classification": "分类", "regression": "回归",
    "error rate of the first minus that of the second": "第一个的错误率减去第二个的",
    "share of all rows in which the first is further off, less that in which it is nearer,": "在全部行中第一个偏差更大的比例减去它更近的比例",
    r"mean absolute error \(each counted up to {clip}\) of the first minus that of the second": "第一个的平均绝对误差（每个误差以 {clip} 为上限）减去第二个的",
}  # fmt: skip
"""What blanks may hold."""
