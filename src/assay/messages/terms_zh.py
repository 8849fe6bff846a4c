"""Words of the claims' fixed vocabularies, and what claims assume, in Chinese; English ones stand with the claims."""

TERMS = {
    # sets of rows
    "train": "训练",
    "holdout": "留出",
    # losses and distributions
    "squared": "平方",
    "logistic": "逻辑斯谛",
    "multinomial": "多项逻辑斯谛",
    "multinomial logistic": "多项逻辑斯谛",
    "hinge": "合页",
    "squared-hinge": "平方合页",
    "huber": "Huber ",
    "quantile": "分位数",
    "epsilon-insensitive": " ε 不敏感",
    "squared-epsilon-insensitive": "平方 ε 不敏感",
    "exponential": "指数",
    "log": "对数",
    "poisson": "泊松",
    "gaussian": "高斯",
    "lognormal": "对数正态",
    "gamma": "伽马",
    "binomial": "二项",
    # impurities, covariances, forms of a bound
    "gini": "基尼",
    "entropy": "熵",
    "squared_error": "平方误差",
    "full": "完全",
    "tied": "共用",
    "diag": "对角",
    "spherical": "球形",
    "first": "一阶",
    "tandem": "成对",
    "disagreement": "分歧",
}

ASSUMPTIONS = {
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
    "A-BAGS": "每个成员只依赖自己那一袋训练行，抽袋时没有看行的内容；成员数事先确定",
    "A-SUPP": "无论训练行还是新数据，没有一行的长度超过事先确定的半径",
    "A-KERNEL": "核是半正定的",
    "A-GROUPS(holdout)": "留出行的各组（即所说的列的取值）独立地抽自同一总体，新组也来自该总体",
    "A-KEPT": "为证书保留的行（有标签的未给教师模型，无标签的未给两个模型）是不看内容抽取的，"
    "没有参与拟合，并来自新数据的分布",
    "A-HELD": "选择决策所用的行、其数目以及抽取它们的种子都不是看着行选的，且成员没有用它们拟合",
    "A-SEQUENCES(holdout)": "按所列切分的留出序列独立地抽自同一分布，新序列也来自该分布",
}
