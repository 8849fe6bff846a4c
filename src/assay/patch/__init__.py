"""Any scikit-learn script with Assay's classes: `patch_sklearn()` puts them where scikit-learn has the same names.

    import assay

    assay.patch_sklearn()                       # all of them; before or after the imports of the script
    from sklearn.svm import SVC                 # Assay's; every fitted model has `certify`
    assay.patch_sklearn(["SVC", "KMeans"])      # some
    with assay.patch_sklearn(): ...             # for a while
    assay.unpatch_sklearn()
    print(assay.patch.report())                 # what was patched, used, fallen back, and the time

`python -m assay.patch script.py` runs a script so. A fit that Assay refuses is scikit-learn's own, for this object,
with the reason in the log "assay.patch" and in the report; what both refuse has scikit-learn's error.
"""

from assay.patch._swap import Patched, Report, patch_sklearn, report, shared_names, unpatch_sklearn

__all__ = ["Patched", "Report", "patch_sklearn", "report", "shared_names", "unpatch_sklearn"]
