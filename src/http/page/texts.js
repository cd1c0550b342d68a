// The texts of the page. The gateway puts its translation in the place of null.

import { addLocale, msgid, ngettext, setDedent, t, useLocale } from './ttag.js';

export { msgid, ngettext, t };

const translation = null;

setDedent(false);
if (translation !== null) {
  addLocale('translation', translation);
  useLocale('translation');
}
