// Words that fill and say nothing, by language, and which language a text is in. A language that is
// not among them has no filler, so that nobody is measured by the words of another one.

type Language = {
  /** Words that nearly every sentence of it has, and none of the others. */
  readonly common: ReadonlySet<string>;
  readonly filler: RegExp;
};

const words = (text: string) => new Set(text.split(' '));
/** Longer phrases first, so that all of their words count. */
const phrases = (text: string) => {
  const each = text.split('|').sort((one, other) => other.length - one.length);
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${each.join('|')})(?![\\p{L}\\p{N}])`, 'gu');
};

const LANGUAGES: readonly Language[] = [
  {
    common: words('the and is of to that this with for you are have it be your'),
    filler: phrases(
      'well|okay|ok|so|basically|actually|really|just|very|quite|simply|literally|honestly|certainly|sure|' +
        'absolutely|definitely|obviously|of course|you know|i mean|i think|i guess|kind of|sort of|let me|' +
        "i will now|i'll now|i am going to|i'm going to|as i said|like i said|as mentioned|in other words|" +
        'great question|good question|happy to help|let us see|now then|anyway|alright|right',
    ),
  },
  {
    common: words('der die das und ist nicht ein eine mit für auf den von sie ich zu'),
    filler: phrases(
      'also|nun|ja|naja|halt|eben|einfach|eigentlich|quasi|sozusagen|wirklich|natürlich|selbstverständlich|' +
        'gerne|irgendwie|grundsätzlich|tatsächlich|sehr|ganz|mal|doch|okay|gut|genau|wie gesagt|ich denke|' +
        'ich meine|ich glaube|ich werde nun|ich werde jetzt|lass mich|mit anderen worten|gute frage',
    ),
  },
  {
    common: words('le les des est une et dans pour que pas vous avec sur ce du'),
    filler: phrases(
      'alors|donc|bon|bah|ben|enfin|voilà|vraiment|simplement|évidemment|bien sûr|certainement|absolument|' +
        "en fait|du coup|en gros|genre|quoi|très|tout à fait|je pense|je crois|je veux dire|d'accord|" +
        'laissez-moi|je vais maintenant|comme je disais|autrement dit|bonne question',
    ),
  },
  {
    common: words('el los las es una que para con por del y está como se al'),
    filler: phrases(
      'bueno|pues|entonces|o sea|básicamente|realmente|simplemente|claro|por supuesto|ciertamente|obviamente|' +
        'en realidad|de hecho|digamos|muy|vale|creo que|pienso que|quiero decir|déjame|déjeme|voy a|' +
        'como dije|como decía|en otras palabras|buena pregunta|absolutamente',
    ),
  },
  {
    common: words('il che di è una per con non sono gli della nel anche questo alla'),
    filler: phrases(
      'allora|dunque|quindi|beh|ecco|cioè|praticamente|veramente|davvero|semplicemente|certo|certamente|' +
        'ovviamente|naturalmente|in realtà|insomma|diciamo|molto|va bene|penso che|credo che|voglio dire|' +
        'fammi|lasciami|come dicevo|in altre parole|bella domanda|assolutamente',
    ),
  },
  {
    common: words('o os uma não para com por que do da em você é no na'),
    filler: phrases(
      'bem|bom|então|tipo|pois|basicamente|realmente|simplesmente|claro|com certeza|certamente|obviamente|' +
        'na verdade|de fato|digamos|muito|tá|certo|acho que|penso que|quero dizer|deixe-me|deixa eu|vou agora|' +
        'como eu disse|ou seja|em outras palavras|boa pergunta|absolutamente',
    ),
  },
];

/** Of the words of a text, at least. */
const LEAST_COMMON_SHARE = 0.08;
/** A word or two of another language stand in many texts. */
const LEAST_COMMON_WORDS = 3;

/** Which part of a text fills, 0 to 1. `prose`: in lower case. */
export function fillerShare(prose: string, count: number): number {
  const language = languageOf(prose.match(/\p{L}+/gu) ?? []);
  if (language === undefined || count === 0) return 0;
  const found = prose.match(language.filler) ?? [];
  return found.reduce((sum, phrase) => sum + phrase.split(/[\s'’]+/).length, 0) / count;
}

/** Undefined where no language of the list is clearly the one. */
function languageOf(all: readonly string[]): Language | undefined {
  const counts = LANGUAGES.map(({ common }) => all.filter((word) => common.has(word)).length);
  const most = Math.max(...counts);
  const language = LANGUAGES[counts.indexOf(most)];
  const isClear = counts.filter((count) => count === most).length === 1;
  if (language === undefined || !isClear || most < all.length * LEAST_COMMON_SHARE)
    return undefined;
  const found = new Set(all.filter((word) => language.common.has(word)));
  return found.size >= LEAST_COMMON_WORDS ? language : undefined;
}
