// Finds claims in an answer: sentences in which the writer says that something was done. Judges
// form only: questions, offers, plans, negations, quotes, code, drafts and other people's actions
// are not claims. Prefers to miss a claim over doubting an honest answer.

import type { ToolAccess } from '../../../kernel/access/rights.ts';
import { onFirstUse } from '../../../lib/json/json.ts';
import { headOf } from '../../../lib/text/cut.ts';

export type Claim = {
  readonly kind: ClaimKind;
  /** As written, cut. */
  readonly sentence: string;
};

/** A call of the turn that had an effect or waits for an approval. */
export type Evidence = { readonly tool: string; readonly access: ToolAccess };

const MAX_SENTENCE_CHARS = 200;
/** Only the end of a longer answer is checked: claims stand there. */
const MAX_TEXT_CHARS = 20_000;

/** Programs and subagents can have any effect. */
const DOES_ANYTHING: readonly ToolAccess[] = ['execute'];
const SUBAGENT_CLAIMS = ['spawn'];
const FOREIGN_TOOL = /^mcp_/;
/** Tool names that support a claim, whatever the access of the tool. */
const NAMED: Readonly<Record<ClaimKind, RegExp>> = {
  sent: /send|mail|message|post|reply|notify|forward/,
  saved: /save|write|remember|note|store|create|add/,
  booked: /book|order|pay|buy|purchase|reserve|transfer/,
  scheduled: /schedul|remind|calendar|event|alarm/,
  changed: /delete|remove|cancel|update|edit|move|change/,
  ran: /run|exec|test|script|build|shell/,
};
const DONE_BY: Readonly<Record<ClaimKind, readonly ToolAccess[]>> = {
  sent: ['send', 'say'],
  saved: ['write', 'rules', 'schedule'],
  booked: [],
  scheduled: ['schedule', 'write', 'rules'],
  changed: ['write', 'rules', 'schedule'],
  ran: [],
};

/** Whether such a call can be the evidence for a claim of this kind. */
export function supports({ tool, access }: Evidence, kind: ClaimKind): boolean {
  if (DOES_ANYTHING.includes(access) || SUBAGENT_CLAIMS.includes(tool)) return true;
  if (FOREIGN_TOOL.test(tool)) return access !== 'read';
  if (DONE_BY[kind].includes(access)) return true;
  return access !== 'read' && access !== 'web' && NAMED[kind].test(tool);
}

/** The note to the model that wrote such sentences. `mayAct`: it can still do what it claimed. */
export function correctionNote(sentences: readonly string[], mayAct: boolean): string {
  const said = sentences.map((sentence) => JSON.stringify(sentence)).join(', ');
  const now = mayAct ? 'If one of your tools can do it, do it now. Otherwise write' : 'Write';
  return `[Your answer says ${said}, and no tool did that in this turn; the answer was withdrawn. ${now} the whole answer anew, and say truthfully what was done and what was not. Mark what was done in an earlier turn as such.]`;
}

/** The first claim of each kind. */
export function claimsOf(markdown: string): readonly Claim[] {
  const text = markdown.slice(-MAX_TEXT_CHARS);
  const plain = text.replaceAll('’', "'").toLowerCase();
  const patterns = LANGUAGES.filter(({ signs }) => signs.test(plain)).flatMap((language) =>
    language.patterns(),
  );
  if (patterns.length === 0) return [];
  const found = new Map<ClaimKind, Claim>();
  for (const sentence of sentencesOf(ownWords(text))) {
    for (const kind of kindsIn(sentence, patterns)) {
      if (!found.has(kind)) found.set(kind, { kind, sentence: cut(sentence) });
    }
  }
  return [...found.values()];
}

const cut = (sentence: string) => headOf(sentence.replaceAll(INNER_DOT, '.'), MAX_SENTENCE_CHARS);

function kindsIn(sentence: string, patterns: readonly ClaimPattern[]): readonly ClaimKind[] {
  if (/[?？]\s*$/.test(sentence)) return [];
  const plain = sentence.toLowerCase();
  const claimed = patterns.filter(({ pattern }) => {
    const match = pattern.exec(plain);
    return match !== null && !isNotSaidAsDone().test(plain.slice(0, match.index));
  });
  if (claimed.length === 0 || isNotAboutNow().test(plain)) return [];
  return claimed.map(({ kind }) => kind);
}

const CODE_BLOCK = /^ {0,3}(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^ {0,3}\1[^\n]*$|(?![\s\S]))/gm;
const QUOTE_LINE = /^ {0,3}>.*$/gm;
const QUOTED = /"[^"\n]{1,500}"|“[^”\n]{1,500}”|„[^“”\n]{1,500}[“”]|«[^»\n]{1,500}»/g;
/** Code, which may be the name of a file. */
const CODE = /`[^`\n]+`/g;
const DOT_IN_WORD = /(?<=[\p{L}\p{N}_-])\.(?=[\p{L}\p{N}])/gu;
const MARKS = /[*_~]{1,3}|^[^\S\n]*(?:[-+•]|\d+[.)]|#{1,6})\s+/gm;
/** A letter that is shown in the answer, up to a line. */
const LETTER =
  /^(?:dear|hi|hello|hey|hallo|liebe[rs]?|sehr geehrte[rs]?|guten (?:tag|morgen)|bonjour|chère?|madame|monsieur|hola|estimad[oa]s?|querid[oa]s?|ciao|gentile|car[oaie]|buongiorno|prezad[oa]s?|olá|car[oa]s?)\s[^\n]{0,60},[ \t]*$[\s\S]*?(?:^[^\S\n]*(?:-{3,}|\*{3,})[^\S\n]*$|(?![\s\S]))/gim;
const DRAFT_INTRODUCED =
  /^[^\n]*(?:draft|entwurf|vorschlag|suggest|brouillon|projet de|proposition|borrador|propuesta|bozza|proposta|rascunho|example|beispiel|exemple|ejemplo|esempio|exemplo|version|template|vorlage|modèle)[^\n]*:[ \t]*\n[\s\S]*?(?:^[^\S\n]*(?:-{3,}|\*{3,})[^\S\n]*$|(?![\s\S]))/gim;

function ownWords(markdown: string): string {
  return markdown
    .replace(CODE_BLOCK, '\n')
    .replace(QUOTE_LINE, '')
    .replace(LETTER, '\n')
    .replace(DRAFT_INTRODUCED, '\n')
    .replace(QUOTED, '“…”')
    .replace(CODE, '¤')
    .replace(MARKS, '')
    .replaceAll('’', "'")
    .replace(DOT_IN_WORD, INNER_DOT);
}

function sentencesOf(text: string): readonly string[] {
  return text
    .split(/(?<=[.!?…？！。])\s+|\n+|(?<=[;:])\s+|\s[–—]\s/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '');
}

// The parts that the patterns of all languages share, and what keeps a sentence from being a claim.
// Verbs that also apply to wording need an object: "I changed the wording" is about the answer
// itself.

type ClaimKind = 'sent' | 'saved' | 'booked' | 'scheduled' | 'changed' | 'ran';
type ClaimForms = Readonly<Record<ClaimKind, readonly string[]>>;
type ClaimPattern = { readonly kind: ClaimKind; readonly pattern: RegExp };

/**
 * Patterns apply to lower case. They name the letters and digits: Unicode's classes, and matching
 * without regard to case, would make each of them ten times as large.
 */
const LETTER_OR_DIGIT =
  'a-z0-9\\u00b5\\u00c0-\\u00d6\\u00d8-\\u00f6\\u00f8-\\u1fff\\u3040-\\ud7ff\\uf900-\\ufdff';
const START = `(?<![${LETTER_OR_DIGIT}'])`;
const END = `(?![${LETTER_OR_DIGIT}])`;
const between = (max: number) => `[^.!?;:]{0,${max}}?`;

/** Replaces a dot within a word, so that a file name does not end a sentence. */
const INNER_DOT = '\u2024';

/**
 * Things that exist outside the answer, in all languages; ¤ stands for code. Lists, messages and
 * notes are missing because answers contain them too.
 */
const THING = [
  `¤|\\S+${INNER_DOT}(?:txt|md|csv|json|ya?ml|html?|pdf|docx?|xlsx?|pptx?|py|js|ts|sh)`,
  'files?|folders?|director(?:y|ies)|reminders?|alarms?|events?|appointments?|meetings?|bookings?|reservations?|orders?|subscriptions?|calendars?|contacts?|accounts?|jobs?|settings?',
  'datei(?:en)?|ordner|erinnerung(?:en)?|termine?|besprechung(?:en)?|buchung(?:en)?|bestellung(?:en)?|kalender|kontakte?|konto|einstellung(?:en)?',
  'fichiers?|dossiers?|rappels?|événements?|rendez-vous|réunions?|réservations?|commandes?|calendrier|agenda|contacts?|comptes?|réglages?|paramètres?',
  'archivos?|carpetas?|recordatorios?|eventos?|citas?|reunión|reuniones|reservas?|pedidos?|calendario|contactos?|cuentas?|ajustes?',
  'appunt[oi]|promemoria|eventi?|riunion[ei]|prenotazion[ei]|contatt[oi]|impostazion[ei]|cartell[ae]|agenda',
  'arquivos?|ficheiros?|pastas?|lembretes?|compromissos?|reuni(?:ão|ões)|encomendas?|configuraç(?:ão|ões)',
].join('|');
const OF_THING = `${between(60)}${START}(?:${THING})${END}`;

/** Notes and lists that are kept for the person; one that is shown after a colon is not. */
const ofYours = (yours: string, things: string) =>
  `${between(40)}${START}(?:${yours}) (?:\\S+ )?(?:${things})${END}(?!:)`;

/** Programs and what checks them. */
const PROGRAM =
  'tests?|test suite|suite|scripts?|programs?|commands?|code|builds?|linter|benchmarks?|migrations?' +
  '|testsuite|skripte?|programme?|befehle?' +
  '|commandes?|programmes?' +
  '|pruebas?|comandos?|programas?|código' +
  '|comand[oi]|programm[ai]|codice' +
  '|testes';
const OF_PROGRAM = `${between(40)}${START}(?:${PROGRAM})${END}(?! (?:in my head|mentally|im kopf))`;

/** Before a claim these turn it into a condition, a plan, a wish, or reported speech. */
const isNotSaidAsDone = onFirstUse(
  () =>
    new RegExp(
      `${START}(?:if|whether|once|when|after|unless|until|before|as soon as|pretend|imagine|suppose|assum\\w+|said|says|wrote|told|think|thought|not sure|don't|didn't|never|wish|as though` +
        '|wenn|ob|sobald|nachdem|falls|bevor|als ob|sagt|sagte|schrieb|glaube|dachte' +
        '|si|quand|dès que|après que|avant que|lorsque|une fois que' +
        '|cuando|en cuanto|después de que|antes de que|dijo|creo' +
        '|se(?=\\s*$)|quando|appena|dopo che|prima che|detto|dice|credo' +
        '|assim que|depois que|antes que|disse|acho)' +
        `${END}[^;]*$`,
    ),
);

/** Refers to another time, when another turn's tools did it, or to the text of the answer. */
const isNotAboutNow = onFirstUse(
  () =>
    new RegExp(
      `${START}(?:yesterday|earlier|previously|last (?:week|month|year|time|night|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|ago|the other day|this morning|back (?:in|on)|below|above|following` +
        '|gestern|vorgestern|vorhin|früher|letzte[nrs]?|vor \\d+|heute morgen|unten|oben|folgende[nrs]?' +
        "|avant-hier|hier,? j'ai|j'ai[^.]* hier|la semaine dernière|il y a|ci-dessous|ci-dessus|tout à l'heure" +
        '|ayer|anteayer|la semana pasada|hace (?:un|una|dos|tres|\\d+)|antes|a continuación|abajo|siguiente' +
        '|ieri|la settimana scorsa|(?:giorn[oi]|or[ae]|settiman[ae]|mes[ei]|minut[oi]|ann[oi]) fa|qui sotto|seguito|seguente' +
        `|ontem|anteontem|semana passada|atrás|há|abaixo|a seguir|seguinte)${END}`,
    ),
);

// English and German: first-person forms for something done.

const EN_ADVERBS =
  '(?:(?:just|now|also|already|successfully|then|gone ahead and|went ahead and) )*';
/** A preceding verb that is no plan, no doubt, and has no other subject. */
const EN_DID = `(?:(?!${START}(?:will|can|could|would|should|shall|might|may|must|need|want|plan|not|never|if|who|which|that|he|she|they|you|it)${END}|n't)[^.!?;:,]){0,80}?`;
/** "I", and "I did that and". */
const EN = `(?:i|we)(?:'ve| have| had)? (?:${EN_ADVERBS}|${EN_DID},? and (?:then |also |have )?)`;
const INTO = `[^.!?;:]{0,60}? (?:to|in|into|on|as) (?:(?:the|your|my|a|an|our) )?(?:\\S+ ){0,2}?(?:${THING}|lists?|notes?|memory|to-?do)${END}`;
/** Without "successfully", "was sent" may describe what others did. */
const succeeded = (verbs: string) =>
  `(?:was|were|is|are)(?: now| just)? (?:successfully (?:${verbs})|(?:${verbs}) successfully)${END}(?! by )`;
const EN_DONE = '(?:has|have) (?:now |just |already |successfully )?been (?:successfully )?';

const ENGLISH: ClaimForms = {
  sent: [
    `${EN}(?:sent|e-?mailed|mailed|texted|forwarded|messaged|notified)${END}(?! (?:above|below))`,
    `${EN}(?:replied to|submitted|posted|published)${END}(?! (?:above|below))`,
    `(?:e?-?mail|message|letter|reply|invitation|invite|file) ${EN_DONE}(?:sent|delivered|forwarded)${END}(?! by )`,
    `(?:e?-?mail|message|letter|reply|invitation|invite|file)s? ${succeeded('sent|delivered|forwarded')}`,
    '(?<=^(?:done[.!,]? ?|ok(?:ay)?[.!,]? ?|all )?)sent(?:!|$|\\.$| (?:it|the|your|to) )',
  ],
  saved: [
    `${EN}(?:saved|stored|recorded|remembered|memorized|jotted down|noted down|made a note)${END}(?! (?:you|us|me|time|money|above)${END})`,
    `${EN}(?:noted|filed) (?:it|this|that (?!the|you|he|she|it|they|there)|¤|your)${END}`,
    `${EN}(?:added|wrote|written|put|logged|appended)${INTO}`,
    `${EN}created${OF_THING}`,
    `(?:file|note|document|entry|preference|preferences) ${EN_DONE}(?:saved|created|stored|written)${END}(?! by )`,
    `(?:file|note|document|entry|preference|report|list)s? ${succeeded('saved|created|stored|written|added')}`,
    '(?<=^(?:done[.!,]? ?)?)saved(?:!|$|\\.$| (?:it|the|your|to|as|in) )',
  ],
  booked: [
    `${EN}(?:booked|purchased|bought|reserved)${END}(?! (?:by|(?:my )?judg))`,
    `${EN}(?:paid(?! attention)|transferred)${END}`,
    `${EN}ordered (?!them|it by|these|those|the (?:list|items|results|entries))`,
    `(?:table|flight|room|hotel|ticket|tickets|reservation|booking|order|payment) (?:${EN_DONE}|is now |is )(?:booked|reserved|made|placed|paid|ordered|confirmed)${END}(?! by )`,
    `(?:table|flight|room|hotel|ticket|reservation|booking|order|payment)s? ${succeeded('booked|reserved|made|placed|paid|ordered|confirmed')}`,
    '(?<=^(?:done[.!,]? ?|all )?)(?:booked|ordered|paid)(?:!|$|\\.$| (?:it|the|your|a) )',
  ],
  scheduled: [
    `${EN}(?:scheduled|rescheduled)${END}`,
    `${EN}(?:set(?: up)?|created|arranged|added)[^.!?;:]{0,30}? (?:reminder|alarm|timer|appointment|event|recurring|cron)`,
    `(?:reminder|alarm|timer|appointment|meeting) (?:${EN_DONE}|is now |is )(?:set|scheduled|created|in place)${END}`,
    `(?:reminder|alarm|timer|appointment|meeting|event)s? ${succeeded('set|scheduled|created|added')}`,
    '(?<=^(?:done[.!,]? ?)?)(?:reminder set|scheduled)(?:!|$|\\.$| (?:for|it|the|your) )',
  ],
  changed: [
    `${EN}(?:deleted|erased)${END}(?! (?:above|below))`,
    `${EN}(?:cancell?ed|unsubscribed)${END}`,
    `${EN}(?:changed|updated|edited|modified|removed|moved|renamed|replaced|marked|archived|overwritten|overwrote|turned o(?:n|ff)|enabled|disabled)${OF_THING}`,
    `(?:file|reminder|event|appointment|meeting|booking|order|subscription|e?-?mail|note|setting|settings) ${EN_DONE}(?:deleted|cancell?ed|removed|updated|changed)${END}(?! by )`,
    `${EN}(?:changed|updated|edited|modified)${ofYours('your', 'notes?|lists?|memory|to-?dos?|profile|preferences|records?|journal|diary')}`,
    `(?:file|reminder|event|appointment|meeting|booking|order|subscription|e?-?mail|note|setting|list)s? ${succeeded('deleted|cancell?ed|removed|updated|changed|moved|renamed')}`,
    '(?<=^(?:done[.!,]? ?)?)(?:deleted|cancell?ed)(?:!|$|\\.$| (?:it|the|your) )',
  ],
  ran: [
    `${EN}(?:ran|run|rerun|executed|launched)(?! (?:\\S+ )?(?:through|search|query))${OF_PROGRAM}`,
  ],
};

/** The participle may be far behind, without another clause in between. */
const DE_BETWEEN =
  '(?:(?!nicht|nie|kein|niemals|noch nicht|, (?:dass|ob|wenn|weil|was|wie|der|die|das) )[^.!?;:]){0,120}?';
const DE = `(?:ich habe|habe ich|wir haben|habe|hab ich|ich hab)${END}${DE_BETWEEN}${START}`;
const DE_PASSIVE = `(?:wurde|ist|sind|wurden)(?: jetzt| nun| soeben| bereits| schon| erfolgreich)* `;

const GERMAN: ClaimForms = {
  sent: [
    `${DE}(?:gesendet|geschickt|verschickt|abgeschickt|versendet|gemailt|weitergeleitet|benachrichtigt|zugeschickt|eingereicht|veröffentlicht)${END}`,
    `(?:mail|nachricht|einladung|antwort|brief) ${DE_PASSIVE}(?:\\S+ )?(?:gesendet|verschickt|abgeschickt|versendet|raus)${END}`,
    '(?<=^(?:erledigt[.!,]? ?)?)(?:gesendet|verschickt|abgeschickt)(?:!|$|\\.$)',
  ],
  saved: [
    `${DE}(?:gespeichert|abgespeichert|notiert|vermerkt|gemerkt|abgelegt|eingetragen|hinzugefügt|aufgeschrieben|hinterlegt)${END}(?!, (?:dass|wie|was) )`,
    `${DE}(?:${THING})${DE_BETWEEN}(?:geschrieben|erstellt|angelegt)${END}`,
    `(?:datei|notiz|liste) ${DE_PASSIVE}(?:\\S+ )?(?:gespeichert|erstellt|angelegt)${END}`,
    '(?<=^(?:erledigt[.!,]? ?)?)(?:gespeichert|notiert|gemerkt)(?:!|$|\\.$)',
  ],
  booked: [
    `${DE}(?:gebucht|bestellt|bezahlt|reserviert|überwiesen|gekauft)${END}`,
    `(?:tisch|flug|zimmer|hotel|ticket|bestellung|reservierung) ${DE_PASSIVE}(?:\\S+ ){0,4}(?:gebucht|reserviert|bestellt|bezahlt)${END}`,
    '(?<=^(?:erledigt[.!,]? ?)?)(?:gebucht|reserviert|bestellt|bezahlt)(?:!|$|\\.$)',
  ],
  scheduled: [
    `${DE}(?:eingeplant|terminiert|angesetzt)${END}`,
    `${DE}(?:erinnerung|wecker|termin|timer|alarm)(?:en|e)?${END}${DE_BETWEEN}(?:gestellt|eingerichtet|gesetzt|erstellt|angelegt|geplant|vereinbart|ausgemacht)${END}`,
    `(?:erinnerung|wecker|termin) (?:ist|steht|wurde)${DE_BETWEEN}(?:eingerichtet|gestellt|gesetzt|angelegt|geplant)${END}`,
  ],
  changed: [
    `${DE}(?:gelöscht|storniert|abgesagt|gekündigt|abbestellt)${END}`,
    `${DE}(?:${THING})${DE_BETWEEN}(?:geändert|aktualisiert|verschoben|umbenannt|entfernt|überschrieben|archiviert)${END}`,
    `(?:datei|termin|buchung|bestellung|erinnerung) ${DE_PASSIVE}(?:\\S+ )?(?:gelöscht|storniert|abgesagt|geändert)${END}`,
    `${DE}(?:meine|deine|ihre|eure)n? (?:\\S+ )?(?:notiz(?:en)?|listen?|einkaufsliste|gedächtnis|profil|tagebuch)${END}${DE_BETWEEN}(?:geändert|aktualisiert|ergänzt|bearbeitet)${END}(?!:)`,
    '(?<=^(?:erledigt[.!,]? ?)?)(?:gelöscht|storniert|abgesagt)(?:!|$|\\.$)',
  ],
  ran: [
    `${DE}(?:tests?|testsuite|skripte?|programme?|befehle?|code|build)${END}${DE_BETWEEN}(?:ausgeführt|laufen lassen|laufen gelassen|gestartet|durchlaufen lassen)${END}`,
  ],
};

// French, Spanish, Italian and Portuguese: first-person forms for something done.

const FR_ADVERBS =
  '(?:(?:bien|déjà|aussi|également|maintenant|donc|immédiatement|tout de suite) )*';
const FR = `(?:j'ai|nous avons|je (?:(?:te|vous|lui|leur|le|la|les|l'|t'|m')\\s?)+ai) ${FR_ADVERBS}`;
const FRENCH: ClaimForms = {
  sent: [
    `${FR}(?:envoyée?s?|transmise?s?|transférée?s?|répondu à|prévenue?s?|notifiée?s?|publiée?s?)${END}`,
    `(?:e-?mail|courriel|message|lettre|invitation) a (?:bien )?été (?:envoyée?|transmise?)${END}`,
    `c'est envoyé${END}`,
  ],
  saved: [
    `${FR}(?:enregistrée?s?|sauvegardée?s?|mémorisée?s?)${END}`,
    `${FR}(?:notée?s?|retenue?s?)${END}(?! que)`,
    `${FR}(?:ajoutée?s?|créée?s?|écrite?s?)${OF_THING}`,
    `c'est (?:noté|enregistré|sauvegardé)${END}`,
  ],
  booked: [
    `${FR}(?:réservée?s?|commandée?s?|payée?s?|achetée?s?|réglée?s?)${END}`,
    `c'est (?:réservé|commandé|payé)${END}`,
  ],
  scheduled: [
    `${FR}(?:programmée?s?|planifiée?s?)${END}`,
    `${FR}(?:mis|créé|réglé|défini|placé)(?: en place)? un (?:rappel|rendez-vous|événement|minuteur)`,
  ],
  changed: [
    `${FR}(?:supprimée?s?|effacée?s?|annulée?s?|résiliée?s?)${END}`,
    `${FR}(?:modifiée?s?|mis à jour|déplacée?s?|renommée?s?)${OF_THING}`,
    `${FR}(?:modifiée?s?|mis à jour|complétée?s?)${ofYours('tes|vos|ta|votre|ton', 'notes?|listes?|mémoire|profil|journal')}`,
  ],
  ran: [`${FR}(?:exécutée?s?|lancée?s?|fait tourner)${OF_PROGRAM}`],
};

/** Not after a negation. */
const ES = '(?<!no |no te |no lo |no la |no se lo |no le |nunca )';
const ES_PERFECT = `${ES}(?:he|hemos|ya he) (?:ya )?`;
const SPANISH: ClaimForms = {
  sent: [
    `${ES_PERFECT}(?:enviado|mandado|reenviado|respondido a|notificado|publicado)${END}`,
    `${ES}(?:envié|mandé|reenvié)${END}`,
    `(?:correo|mensaje|carta|invitación) (?:ha sido|fue) enviad[oa]${END}(?! por )`,
    `se (?:ha enviado|envió) (?:el|la|tu|su) (?:correo|mensaje|carta|invitación)${END}`,
    '(?<=^¡?(?:listo[.!,]? ?)?)enviado(?:!|$|\\.$)',
  ],
  saved: [
    `${ES_PERFECT}(?:guardado|anotado|apuntado|memorizado|registrado)${END}`,
    `${ES}(?:guardé|anoté|apunté)${END}`,
    `${ES_PERFECT}(?:añadido|agregado|creado|escrito)${OF_THING}`,
    '(?<=^¡?(?:listo[.!,]? ?)?)(?:guardado|anotado)(?:!|$|\\.$)',
  ],
  booked: [
    `${ES_PERFECT}(?:reservado|comprado|pagado|encargado)${END}`,
    `${ES}(?:reservé|compré|pagué)${END}`,
    '(?<=^¡?(?:listo[.!,]? ?)?)reservado(?:!|$|\\.$)',
  ],
  scheduled: [
    `${ES_PERFECT}(?:programado|agendado)${END}`,
    `${ES}(?:programé|agendé)${END}`,
    `${ES_PERFECT}(?:puesto|creado|configurado) un (?:recordatorio|evento|temporizador)`,
  ],
  changed: [
    `${ES_PERFECT}(?:eliminado|borrado|cancelado|anulado)${END}`,
    `${ES}(?:eliminé|borré|cancelé)${END}`,
    `${ES_PERFECT}(?:modificado|cambiado|actualizado|movido)${OF_THING}`,
    `${ES_PERFECT}(?:modificado|cambiado|actualizado)${ofYours('tus?|sus?', 'notas?|listas?|memoria|perfil|diario')}`,
    `${ES}(?:modifiqué|actualicé)${ofYours('tus?|sus?', 'notas?|listas?|memoria|perfil|diario')}`,
  ],
  ran: [
    `${ES_PERFECT}(?:ejecutado|corrido|lanzado)${OF_PROGRAM}`,
    `${ES}(?:ejecuté|corrí)${OF_PROGRAM}`,
  ],
};

const IT =
  "(?<!non |non l'|non gli |non te l'|non ti )(?:ho|abbiamo)(?: già| appena| anche| ora| subito)* ";
const IT_OBJECT = `(?<!non )(?:te |gliel|ce |gli |ti )?(?:l')?${IT}`;
const ITALIAN: ClaimForms = {
  sent: [
    `${IT_OBJECT}(?:inviat|mandat|spedit|inoltrat|pubblicat|avvisat)[oaie]${END}`,
    `(?:e-?mail|messaggio|lettera|invito) è stat[oa] inviat[oa]${END}`,
    '(?<=^(?:fatto[.!,]? ?)?)inviat[oa](?:!|$|\\.$)',
  ],
  saved: [
    `${IT_OBJECT}(?:salvat|annotat|memorizzat|registrat|segnat)[oaie]${END}`,
    `${IT_OBJECT}(?:aggiunt|creat|scritt)[oaie]${OF_THING}`,
  ],
  booked: [`${IT_OBJECT}(?:prenotat|ordinat|pagat|acquistat|comprat)[oaie]${END}`],
  scheduled: [
    `${IT_OBJECT}(?:programmat|pianificat|fissat)[oaie]${END}`,
    `${IT_OBJECT}(?:impostato|creato|messo) un (?:promemoria|evento|timer|appuntamento)`,
  ],
  changed: [
    `${IT_OBJECT}(?:eliminat|cancellat|annullat|disdett)[oaie]${END}`,
    `${IT_OBJECT}(?:modificat|aggiornat|spostat|rinominat)[oaie]${OF_THING}`,
    `${IT_OBJECT}(?:modificat|aggiornat)[oaie]${ofYours('tue?|tuoi|sue?|suoi', 'not[ae]|list[ae]|memoria|profilo|diario')}`,
  ],
  ran: [`${IT_OBJECT}(?:eseguit|lanciat|avviat)[oaie]${OF_PROGRAM}`],
};

const PT = '(?<!não |não o |não a |não lhe |não te |nunca )';
const PORTUGUESE: ClaimForms = {
  sent: [
    `${PT}(?:enviei|mandei|encaminhei|reencaminhei|notifiquei|publiquei)${END}`,
    `(?:e-?mail|mensagem|carta|convite) foi enviad[oa]${END}`,
    '(?<=^(?:pronto[.!,]? ?)?)enviad[oa](?:!|$|\\.$)',
  ],
  saved: [
    `${PT}(?:salvei|guardei|gravei|anotei|registrei|memorizei)${END}`,
    `${PT}(?:adicionei|criei|escrevi)${OF_THING}`,
  ],
  booked: [`${PT}(?:reservei|comprei|paguei|encomendei)${END}`],
  scheduled: [
    `${PT}(?:agendei|programei|marquei)${END}`,
    `${PT}(?:criei|defini|configurei) um (?:lembrete|evento|alarme)`,
  ],
  changed: [
    `${PT}(?:apaguei|excluí|eliminei|cancelei)${END}`,
    `${PT}(?:alterei|modifiquei|atualizei|movi)${OF_THING}`,
    `${PT}(?:alterei|modifiquei|atualizei)${ofYours('tuas?|suas?|teu|seu', 'notas?|listas?|memória|perfil|diário')}`,
  ],
  ran: [`${PT}(?:executei|rodei|corri)${OF_PROGRAM}`],
};

/**
 * `signs`: what a text with a claim in the language contains at least. Its patterns take
 * milliseconds and memory, so they are compiled with the first such text.
 */
const LANGUAGES: readonly {
  readonly signs: RegExp;
  readonly patterns: () => readonly ClaimPattern[];
}[] = [
  {
    signs:
      /\b(?:i|we|been|successfully|sent|saved|booked|ordered|paid|reserved|made|placed|confirmed|set|scheduled|created|in place|deleted|cancell?ed)\b/,
    patterns: compiled(ENGLISH),
  },
  {
    signs:
      /\b(?:habe?|haben|wurden?|ist|sind|steht|gesendet|verschickt|abgeschickt|gespeichert|notiert|gemerkt|gebucht|reserviert|bestellt|bezahlt|gelöscht|storniert|abgesagt)\b/,
    patterns: compiled(GERMAN),
  },
  { signs: /\b(?:j'ai|nous avons|je|c'est)\b|été/, patterns: compiled(FRENCH) },
  {
    signs: /\b(?:he|hemos|ha|fue|enviado|guardado|anotado|reservado)\b|[éíó](?![a-zà-ÿ])/,
    patterns: compiled(SPANISH),
  },
  { signs: /\b(?:ho|abbiamo|stat[oa]|inviat[oa])\b/, patterns: compiled(ITALIAN) },
  {
    signs: /ei\b|\b(?:foi|enviad[oa]|escrevi|defini|excluí|movi|corri)/,
    patterns: compiled(PORTUGUESE),
  },
];

function compiled(forms: ClaimForms): () => readonly ClaimPattern[] {
  return onFirstUse(() =>
    (Object.keys(forms) as ClaimKind[]).flatMap((kind) =>
      forms[kind].map((source) => ({ kind, pattern: new RegExp(START + source) })),
    ),
  );
}
