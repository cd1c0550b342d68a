// Over two hundred answers that are right as they stand: short and long, in six languages and a few
// more, code, tables, lists, logs, poems with refrains, data. Nothing of ours may touch any of them.

import { GOOD_ANSWERS } from './good-answers.ts';

const F = '```';
const times = <T>(count: number, make: (n: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, n) => make(n));

type Tongue = {
  readonly sentences: readonly string[];
  readonly refrain: string;
  readonly verses: readonly string[];
  readonly steps: readonly string[];
  readonly short: readonly string[];
  readonly chatty: string;
};

const TONGUES: Readonly<Record<string, Tongue>> = {
  en: {
    sentences: [
      'The lighthouse was built in 1851 by masons who had never worked so close to the sea.',
      'Its lens, ground in a workshop inland, arrived by cart after eleven days on poor roads.',
      'For forty years two families kept the lamp, and their logbooks tell more of weather than of people.',
      'A storm in the winter of 1893 took the landing stage and most of the garden wall.',
      'Electric light came late, because nobody wanted to pay for a cable across the marsh.',
      'Today the tower is a museum with three rooms, a narrow stair and a view of the whole bay.',
      'Visitors should book ahead in summer and bring a jacket, since the wind never rests up there.',
      'What remains of the old signal house serves as a shelter for people who count birds.',
      'Historians still argue whether the second keeper drowned or simply left without a word.',
      'Either way, his chair stands by the window, and children are told not to sit in it.',
    ],
    refrain: 'Row on, row on, the tide is turning,',
    verses: [
      'The harbour lamps were low and burning,',
      'A letter lay upon the stair,',
      'My father sailed in a coat of wool,',
      'The gulls had nothing more to say,',
    ],
    steps: [
      'Turn the water off at the main.',
      'Unscrew the old tap by hand.',
      'Clean the thread and wrap it with tape.',
      'Fit the new tap and open the water slowly.',
    ],
    short: [
      'Yes, at eight.',
      'Done: the file is saved as notes.md.',
      'I could not find it.',
      'Sorry, that server is down right now.',
      'Sure!',
    ],
    chatty:
      'Well, I think you are right, and I am really glad you asked. Honestly, the second plan is better: it costs less and you keep the garden. Of course you can still change your mind until Friday.',
  },
  de: {
    sentences: [
      'Die Mühle am Bach wurde 1742 gebaut und gehörte lange Zeit dem Kloster auf dem Hügel.',
      'Ihr Rad trieb zwei Mahlgänge, von denen der kleinere nur für Gerste benutzt wurde.',
      'Nach dem großen Hochwasser blieb sie vier Jahre still, weil niemand den Damm bezahlen wollte.',
      'Erst ein Müller aus dem Nachbartal richtete das Wehr mit eigenem Geld wieder her.',
      'Seine Rechnungsbücher liegen heute im Archiv und zeigen, wie teuer Eisen damals war.',
      'Im Winter wurde dort auch Holz gesägt, was den Nachbarn zu laut erschien.',
      'Seit 1961 dreht sich das Rad nur noch für Besucher, jeden zweiten Sonntag im Monat.',
      'Wer die Treppe hinaufgeht, sieht oben den alten Getreidekasten und ein Wespennest.',
      'Der Verein sucht Leute, die beim Streichen der Fenster helfen und Kuchen backen.',
    ],
    refrain: 'Und der Wind, der Wind geht über das Land,',
    verses: [
      'Am Morgen stand ein Pferd am Zaun,',
      'Die Mutter rief uns vom Fenster her,',
      'Im Hafen lag ein graues Schiff,',
      'Der Schnee fiel leise auf das Dach,',
    ],
    steps: [
      'Den Teig eine Stunde ruhen lassen.',
      'Die Form mit Butter einstreichen.',
      'Bei 180 Grad vierzig Minuten backen.',
      'Vor dem Stürzen abkühlen lassen.',
    ],
    short: [
      'Ja, um acht.',
      'Das ist also erledigt.',
      'Nein, also nicht.',
      'Gern!',
      'Die Datei liegt in notizen.md.',
    ],
    chatty:
      'Also, das ist eigentlich ganz einfach: Der Zug fährt um 8:12 Uhr, und du musst in Ulm umsteigen. Ich denke, der spätere ist aber besser, weil er natürlich weniger voll ist. Die Karte kostet 29 Euro.',
  },
  fr: {
    sentences: [
      'Le pont de pierre date de 1688 et relie les deux moitiés du village depuis toujours.',
      'Ses trois arches ont résisté à la crue de 1910, mais le parapet a été emporté.',
      'Les habitants racontent que le maçon avait parié sa maison sur la solidité des piles.',
      'On y passait autrefois avec des troupeaux, et la mairie percevait un péage en fromage.',
      'Pendant la guerre, une charge explosive y fut posée puis retirée par un instituteur.',
      'Depuis 1987, les voitures empruntent la rocade et le pont appartient aux promeneurs.',
      'En été, des musiciens jouent sous la deuxième arche, où le son est étonnamment clair.',
      'Une plaque discrète rappelle le nom des ouvriers, sauf celui du plus jeune.',
    ],
    refrain: 'Ô ma rivière, emporte-moi,',
    verses: [
      'Le soir descend sur les roseaux,',
      'Une lampe brûle chez le passeur,',
      'J’ai perdu la clé du vieux jardin,',
      'La pluie parlait avec les toits,',
    ],
    steps: [
      'Éplucher les pommes et les couper en quartiers.',
      'Faire fondre le beurre sans le colorer.',
      'Disposer les fruits en cercle.',
      'Cuire trente minutes à four chaud.',
    ],
    short: [
      'Oui, à huit heures.',
      'C’est fait.',
      'Je ne l’ai pas trouvé.',
      'Bien sûr !',
      'Donc non.',
    ],
    chatty:
      'Alors, en fait, le plus simple est de prendre le train de 9 h 40 pour Lyon. Je pense que la place près de la fenêtre est vraiment plus calme, et elle coûte deux euros de plus.',
  },
  es: {
    sentences: [
      'La biblioteca del puerto abrió sus puertas en 1927 con apenas trescientos libros.',
      'Su primera directora recorría los barcos para pedir novelas a los marineros que volvían.',
      'Durante la guerra el sótano sirvió de refugio y también de escuela para los niños.',
      'Los estantes de roble fueron donados por un carpintero que no sabía leer.',
      'En los años sesenta llegó el primer catálogo impreso, lleno de errores y de notas a mano.',
      'Hoy conserva mapas náuticos, cartas de emigrantes y una colección de recetas.',
      'Los sábados por la tarde hay lecturas en voz alta y se sirve chocolate caliente.',
      'El edificio necesita un tejado nuevo, y los vecinos han reunido ya la mitad del dinero.',
    ],
    refrain: 'Ay, luna, luna de sal,',
    verses: [
      'La barca duerme junto al muelle,',
      'Mi abuela cose la red del mar,',
      'Un perro ladra en la otra orilla,',
      'El faro cuenta las olas,',
    ],
    steps: [
      'Lava los tomates y pártelos por la mitad.',
      'Añade aceite, sal y un diente de ajo.',
      'Tritura todo hasta que quede fino.',
      'Déjalo enfriar dos horas.',
    ],
    short: ['Sí, a las ocho.', 'Ya está hecho.', 'No lo encontré.', 'Claro.', 'Entonces no.'],
    chatty:
      'Bueno, en realidad hay dos opciones: el autobús de las siete, que es muy barato, o el tren de las nueve. Creo que el tren te conviene más porque llega al centro.',
  },
  it: {
    sentences: [
      'La bottega del liutaio si trova nella stessa strada da più di due secoli.',
      'Il fondatore era figlio di un barcaiolo e imparò il mestiere riparando un violino caduto in acqua.',
      'I suoi strumenti avevano un suono scuro che piaceva poco alle orchestre ma molto ai cantori.',
      'Nel 1884 un incendio distrusse il magazzino del legno, stagionato per quarant’anni.',
      'La nipote riaprì il laboratorio con tre tavoli e una sola finestra rivolta a nord.',
      'Oggi vi lavorano due artigiani che costruiscono quattro viole all’anno.',
      'Chi vuole visitarla deve telefonare, perché la vernice fresca non sopporta la polvere.',
      'Sulla parete è appesa una lettera di ringraziamento scritta da un violoncellista cieco.',
    ],
    refrain: 'Torna, torna, sera mia,',
    verses: [
      'Il gatto guarda dal davanzale,',
      'La neve chiude la valle,',
      'Un treno passa senza fermare,',
      'Mia sorella canta piano,',
    ],
    steps: [
      'Scaldare il brodo senza farlo bollire.',
      'Tostare il riso per due minuti.',
      'Aggiungere il vino e lasciarlo sfumare.',
      'Mantecare con burro e formaggio.',
    ],
    short: ['Sì, alle otto.', 'Fatto.', 'Non l’ho trovato.', 'Certo!', 'Quindi no.'],
    chatty:
      'Allora, in realtà la cosa è semplice: il museo chiude il lunedì, quindi conviene andarci martedì mattina. Penso che con il biglietto unico risparmi davvero molto, circa sei euro.',
  },
  pt: {
    sentences: [
      'O mercado de peixe foi inaugurado em 1898 e tem um telhado de ferro vindo de Glasgow.',
      'As vendedoras chegam às quatro da manhã, quando os barcos ainda descarregam o gelo.',
      'Durante décadas uma delas anotou o preço da sardinha em cadernos que hoje são estudados.',
      'A cheia de 1967 alagou as bancas e levou as balanças para o rio.',
      'Depois da obra o chão ficou mais alto e os clientes deixaram de molhar os sapatos.',
      'No primeiro andar funciona uma escola de cozinha com turmas pequenas.',
      'Quem chega depois do meio-dia encontra apenas polvo, limões e histórias.',
      'A câmara quer instalar painéis solares sem mudar a cor das telhas.',
    ],
    refrain: 'Vai, meu barco, vai devagar,',
    verses: [
      'A rua cheira a pão e a chuva,',
      'O meu irmão partiu no verão,',
      'Há um relógio parado na torre,',
      'As redes secam ao sol,',
    ],
    steps: [
      'Demolhe o bacalhau de um dia para o outro.',
      'Coza as batatas com a pele.',
      'Refogue a cebola em azeite.',
      'Leve ao forno até dourar.',
    ],
    short: ['Sim, às oito.', 'Está feito.', 'Não o encontrei.', 'Claro!', 'Então não.'],
    chatty:
      'Bom, na verdade o mais simples é ir de elétrico até ao largo e descer a pé. Acho que à tarde há muito menos gente, e o bilhete custa três euros.',
  },
};

function inTongue({ sentences, refrain, verses, steps, short, chatty }: Tongue): readonly string[] {
  const [first = '', second = '', third = ''] = sentences;
  const half = Math.ceil(sentences.length / 2);
  const essay = `${sentences.slice(0, half).join(' ')}\n\n${sentences.slice(half).join(' ')}`;
  const stanza = (verse: string) => `${verse}\n${refrain}\n${verse.toUpperCase()}\n${refrain}`;
  return [
    ...short,
    chatty,
    first,
    `${second} ${third}`,
    essay,
    `# ${steps[0]}\n\n${essay}\n\n## ${steps[1]}\n\n${sentences.toReversed().join(' ')}`,
    sentences.map((sentence) => `- ${sentence}`).join('\n'),
    steps.map((step, n) => `${n + 1}. ${step}`).join('\n'),
    verses.map(stanza).join('\n\n'),
    times(12, () => refrain).join('\n'),
    `${chatty}\n\n${F}\n${steps.join('\n')}\n${F}\n\n${third}`,
    `> ${first}\n\n${second}`,
    `**${short[0]}** ${first}\n\n| # | |\n|---|---|\n${steps.map((step, n) => `| ${n + 1} | ${step} |`).join('\n')}`,
  ];
}

const CODE: readonly (readonly [string, string])[] = [
  [
    'python',
    'def add(a, b):\n    return a + b\n\n\ndef main():\n    for i in range(10):\n        print(add(i, i))',
  ],
  [
    'ts',
    'export function add(a: number, b: number): number {\n  return a + b;\n}\n\nfor (const n of [1, 2, 3]) console.log(add(n, n));',
  ],
  ['rust', 'fn main() {\n    let v: Vec<i32> = (0..10).collect();\n    println!("{:?}", v);\n}'],
  ['go', 'func main() {\n\tfor i := 0; i < 10; i++ {\n\t\tfmt.Println(i)\n\t}\n}'],
  ['c', '#include <stdio.h>\nint main(void) {\n  puts("hello");\n  return 0;\n}'],
  [
    'java',
    'class A {\n  public static void main(String[] args) {\n    System.out.println("hi");\n  }\n}',
  ],
  ['sql', 'SELECT name, count(*)\nFROM people\nGROUP BY name\nHAVING count(*) > 1;'],
  ['bash', 'set -eu\nfor f in *.log; do\n  gzip "$f"\ndone'],
  ['html', '<ul>\n  <li>one</li>\n  <li>two</li>\n</ul>'],
  ['css', '.a { color: red; }\n.b { color: red; }\n.c { color: red; }'],
  ['haskell', 'main :: IO ()\nmain = mapM_ print [1..10]'],
  ['yaml', 'services:\n  web:\n    image: nginx\n  db:\n    image: postgres'],
];

const aroundCode = ([language, code]: readonly [string, string]): readonly string[] => [
  `${F}${language}\n${code}\n${F}`,
  `Here is how it is done in ${language}:\n\n${F}${language}\n${code}\n${F}\n\nRun it with care: it prints to the terminal.`,
  `${F}${language}\n${times(60, () => code).join('\n\n')}\n${F}`,
];

const rows = (count: number, row: (n: number) => string) => times(count, row).join('\n');

const DATA: readonly string[] = [
  `| a | b |\n|---|---|\n${rows(150, () => '| open | none |')}`,
  `| n | square |\n|---|---|\n${rows(200, (n) => `| ${n} | ${n * n} |`)}`,
  rows(300, (n) => `${n + 1}`),
  rows(300, (n) => `${n + 1}. item`),
  times(400, (n) => String(n)).join(', '),
  times(60, () => '0 0 0 0 0 0 0 0 0 0').join('\n'),
  rows(120, (n) => `2026-11-21T10:00:${String(n % 60).padStart(2, '0')}Z INFO request served`),
  `${F}\n${rows(120, () => 'INFO heartbeat ok')}\n${F}`,
  `${F}csv\nname,age\n${rows(80, () => 'anna,7')}\n${F}`,
  `${F}json\n${JSON.stringify(
    times(50, (n) => ({ id: n, name: 'x', tags: [] })),
    undefined,
    2,
  )}\n${F}`,
  JSON.stringify(times(80, () => ({ state: 'open', open: true }))),
  `${'-'.repeat(80)}\n${'='.repeat(200)}`,
  rows(24, (n) => '*'.repeat(n)),
  rows(40, () => '+---+---+---+'),
  rows(60, (n) => `- [ ] day ${n + 1}`),
  rows(60, () => '- [ ] ______'),
  rows(60, () => 'Name: ____________________  Phone: ____________'),
  rows(50, () => '- [ ] Wrote one sentence about the day'),
  `Pad it with these:\n\n${rows(300, () => '    nop')}`,
  rows(31, (n) => `Day ${n + 1}: rest, drink water, walk for twenty minutes.`),
  rows(20, (n) => `Verse ${n + 1}\nNa na na na, hey hey hey, goodbye`),
  `${times(16, () => 'na').join(' ')}, ${times(16, () => 'na').join(' ')} Batman!`,
  `Ha${'ha'.repeat(100)}!`,
  `No${'o'.repeat(300)}!`,
  '99 bottles of beer on the wall, 99 bottles of beer.\n'.concat(
    rows(
      98,
      (n) =>
        `Take one down, pass it around, ${98 - n} bottles of beer on the wall.\n${98 - n} bottles of beer.`,
    ),
  ),
  'All work and no play makes Jack a dull boy.\n'.repeat(25),
  '我们明天早上八点在车站见面。请带上护照和两张照片，因为办公室不接受复印件。',
  '明日の朝八時に駅で会いましょう。雨が降ったら、喫茶店で待っています。',
  'Мы встречаемся завтра в восемь утра на вокзале. Возьмите с собой паспорт и две фотографии.',
  'نلتقي غدا في الثامنة صباحا عند المحطة. أحضر جواز السفر وصورتين.',
  'Spotykamy się jutro o ósmej rano na dworcu. Weź ze sobą paszport i dwa zdjęcia.',
  'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new',
  'The result of the election shows a change. Tool output is discussed in chapter 3: "[tool result]" marks it.',
  'x = (-b ± √(b² − 4ac)) / 2a\n\nx₁ = 2, x₂ = 3',
];

export const GOOD_CORPUS: readonly string[] = [
  ...new Set([
    ...GOOD_ANSWERS,
    ...Object.values(TONGUES).flatMap(inTongue),
    ...CODE.flatMap(aroundCode),
    ...DATA,
  ]),
];

/** Good prose, for answers in which something else is wrong. */
export const essayIn = (tongue: string): string => TONGUES[tongue]?.sentences.join(' ') ?? '';
