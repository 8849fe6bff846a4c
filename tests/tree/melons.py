"""The watermelon data of Zhou, Machine Learning (2016), tables 4.1, 4.3 and 4.4, and the loan data of Li,
table 5.1."""

import numpy as np
import pandas as pd

NAMES = ["色泽", "根蒂", "敲声", "纹理", "脐部", "触感"]
_ROWS = """青绿 蜷缩 浊响 清晰 凹陷 硬滑 0.697 0.460 是
乌黑 蜷缩 沉闷 清晰 凹陷 硬滑 0.774 0.376 是
乌黑 蜷缩 浊响 清晰 凹陷 硬滑 0.634 0.264 是
青绿 蜷缩 沉闷 清晰 凹陷 硬滑 0.608 0.318 是
浅白 蜷缩 浊响 清晰 凹陷 硬滑 0.556 0.215 是
青绿 稍蜷 浊响 清晰 稍凹 软粘 0.403 0.237 是
乌黑 稍蜷 浊响 稍糊 稍凹 软粘 0.481 0.149 是
乌黑 稍蜷 浊响 清晰 稍凹 硬滑 0.437 0.211 是
乌黑 稍蜷 沉闷 稍糊 稍凹 硬滑 0.666 0.091 否
青绿 硬挺 清脆 清晰 平坦 软粘 0.243 0.267 否
浅白 硬挺 清脆 模糊 平坦 硬滑 0.245 0.057 否
浅白 蜷缩 浊响 模糊 平坦 软粘 0.343 0.099 否
青绿 稍蜷 浊响 稍糊 凹陷 硬滑 0.639 0.161 否
浅白 稍蜷 沉闷 稍糊 凹陷 硬滑 0.657 0.198 否
乌黑 稍蜷 浊响 清晰 稍凹 软粘 0.360 0.370 否
浅白 蜷缩 浊响 模糊 平坦 硬滑 0.593 0.042 否
青绿 蜷缩 沉闷 稍糊 稍凹 硬滑 0.719 0.103 否"""
_GAPS = """- 蜷缩 浊响 清晰 凹陷 硬滑
乌黑 蜷缩 沉闷 清晰 凹陷 -
乌黑 蜷缩 - 清晰 凹陷 硬滑
青绿 蜷缩 沉闷 清晰 凹陷 硬滑
- 蜷缩 浊响 清晰 凹陷 硬滑
青绿 稍蜷 浊响 清晰 - 软粘
乌黑 稍蜷 浊响 稍糊 稍凹 软粘
乌黑 稍蜷 浊响 - 稍凹 硬滑
乌黑 - 沉闷 稍糊 稍凹 硬滑
青绿 硬挺 清脆 - 平坦 软粘
浅白 硬挺 清脆 模糊 平坦 -
浅白 蜷缩 - 模糊 平坦 软粘
- 稍蜷 浊响 稍糊 凹陷 硬滑
浅白 稍蜷 沉闷 稍糊 凹陷 硬滑
乌黑 稍蜷 浊响 清晰 - 软粘
浅白 蜷缩 浊响 模糊 平坦 硬滑
青绿 - 沉闷 稍糊 稍凹 硬滑"""
_LOANS = """青年 否 否 一般 否
青年 否 否 好 否
青年 是 否 好 是
青年 是 是 一般 是
青年 否 否 一般 否
中年 否 否 一般 否
中年 否 否 好 否
中年 是 是 好 是
中年 否 是 非常好 是
中年 否 是 非常好 是
老年 否 是 非常好 是
老年 否 是 好 是
老年 是 否 好 是
老年 是 否 非常好 是
老年 否 否 一般 否"""


def melons(continuous=False):
    """Return version 2.0, or 3.0 with density and sugar."""
    rows = [line.split() for line in _ROWS.split("\n")]
    X = pd.DataFrame([row[:6] for row in rows], columns=NAMES)
    if continuous:
        X["密度"], X["含糖率"] = ([float(row[i]) for row in rows] for i in (6, 7))
    return X, np.array([row[8] for row in rows])


def melons_with_gaps():
    """Return version 2.0 alpha, with missing values."""
    rows = [[None if word == "-" else word for word in line.split()] for line in _GAPS.split("\n")]
    return pd.DataFrame(rows, columns=NAMES), melons()[1]


def loans():
    rows = [line.split() for line in _LOANS.split("\n")]
    X = pd.DataFrame([row[:4] for row in rows], columns=["年龄", "有工作", "有自己的房子", "信贷情况"])
    return X, np.array([row[4] for row in rows])
