"""The vocabulary of the phrasebook: every word of the generated corpus, English beside Chinese.

Each word has one translation, so that one English sentence has one Chinese side. Words whose English form would
leave the Chinese open (fish, sheep: one or many?) are left out on purpose.
"""

from __future__ import annotations

from typing import NamedTuple


class Person(NamedTuple):
    english: str
    chinese: str
    agreement: int  # which form of the verb follows: FIRST, PLURAL or THIRD


FIRST, PLURAL, THIRD = range(3)


class Noun(NamedTuple):
    singular: str
    plural: str
    measure: str
    chinese: str
    kind: str  # the key of ADJECTIVES
    container: tuple[str, str] | None = None  # ("cup", "cups"): the noun is a mass, `singular` equals `plural`


class Verb(NamedTuple):
    base: str
    third: str
    past: str
    ing: str
    chinese: str
    objects: tuple[str, ...]  # singular nouns that the verb may take


class Phrase(NamedTuple):
    """A ready-made part of a sentence. The English of times and places begins with a space."""

    english: str
    chinese: str


def _list(names: str) -> tuple[str, ...]:
    return tuple(names.split())


def _verb(forms: str, chinese: str, objects: str) -> Verb:
    base, third, past, ing = forms.split()
    return Verb(base, third, past, ing, chinese, _list(objects))


PRONOUNS = (
    Person("I", "我", FIRST),
    Person("you", "你", PLURAL),
    Person("he", "他", THIRD),
    Person("she", "她", THIRD),
    Person("we", "我们", PLURAL),
    Person("they", "他们", PLURAL),
)
NAMES = tuple(
    Person(english, chinese, THIRD)
    for english, chinese in zip(
        _list("Tom Anna Mary David Lucy Peter Emma Jack Lily Paul"),
        _list("汤姆 安娜 玛丽 大卫 露西 彼得 艾玛 杰克 莉莉 保罗"),
        strict=True,
    )
)
OWNERS = (Phrase("my", "我"), Phrase("your", "你"), Phrase("his", "他"), Phrase("her", "她"))
FAMILY = (
    Phrase("mother", "妈妈"),
    Phrase("father", "爸爸"),
    Phrase("grandmother", "奶奶"),
    Phrase("grandfather", "爷爷"),
    Phrase("older brother", "哥哥"),
    Phrase("younger sister", "妹妹"),
    Phrase("son", "儿子"),
    Phrase("daughter", "女儿"),
)
# 位 is the polite measure word, for people named by their profession.
PEOPLE = (
    Noun("teacher", "teachers", "位", "老师", "person"),
    Noun("doctor", "doctors", "位", "医生", "person"),
    Noun("nurse", "nurses", "位", "护士", "person"),
    Noun("driver", "drivers", "位", "司机", "person"),
    Noun("writer", "writers", "位", "作家", "person"),
    Noun("lawyer", "lawyers", "位", "律师", "person"),
    Noun("engineer", "engineers", "位", "工程师", "person"),
    Noun("farmer", "farmers", "位", "农民", "person"),
    Noun("student", "students", "个", "学生", "person"),
    Noun("boy", "boys", "个", "男孩", "person"),
    Noun("girl", "girls", "个", "女孩", "person"),
    Noun("man", "men", "个", "男人", "person"),
    Noun("woman", "women", "个", "女人", "person"),
    Noun("child", "children", "个", "孩子", "person"),
)

# Before a noun: one syllable stands alone (新书), longer ones take 的 (红色的书).
_RED, _BLUE, _YELLOW = Phrase("red", "红色的"), Phrase("blue", "蓝色的"), Phrase("yellow", "黄色的")
_WHITE, _BLACK = Phrase("white", "白色的"), Phrase("black", "黑色的")
_NEW, _OLD, _BIG, _SMALL = Phrase("new", "新"), Phrase("old", "旧"), Phrase("big", "大"), Phrase("small", "小")
_HOT, _COLD = Phrase("hot", "热"), Phrase("cold", "冰")
_CHEAP, _EXPENSIVE = Phrase("cheap", "便宜的"), Phrase("expensive", "昂贵的")
_LONG, _SHORT = Phrase("long", "很长的"), Phrase("short", "很短的")
_BEAUTIFUL, _INTERESTING = Phrase("beautiful", "漂亮的"), Phrase("interesting", "有趣的")
_CUTE, _CLEVER, _FRESH = Phrase("cute", "可爱的"), Phrase("clever", "聪明的"), Phrase("fresh", "新鲜的")

ADJECTIVES: dict[str, tuple[Phrase, ...]] = {
    "print": (_NEW, _OLD, _CHEAP, _INTERESTING),
    "text": (_LONG, _SHORT, _INTERESTING),
    "clothing": (_RED, _BLUE, _YELLOW, _BLACK, _NEW, _BEAUTIFUL),
    "machine": (_NEW, _OLD, _CHEAP, _EXPENSIVE),
    "vehicle": (_RED, _BLUE, _WHITE, _NEW, _OLD),
    "furniture": (_BIG, _SMALL, _WHITE, _BLACK),
    "animal": (_WHITE, _BLACK, _CUTE, _CLEVER),
    "food": (_BIG, _SMALL, _FRESH),
    "drink": (_HOT, _COLD),
    "juice": (_COLD,),
    "dish": (_HOT,),
    "tool": (_NEW, _OLD, _BLACK),
    "ticket": (_CHEAP, _EXPENSIVE),
    "map": (_NEW, _OLD, _BIG),
    "picture": (_BEAUTIFUL, _INTERESTING, _EXPENSIVE),
    "photo": (_OLD, _BEAUTIFUL, _INTERESTING),
    "flower": (_RED, _YELLOW, _WHITE, _BEAUTIFUL),
}

_CUP, _BOTTLE, _BOWL = ("cup", "cups"), ("bottle", "bottles"), ("bowl", "bowls")
NOUNS = {
    noun.singular: noun
    for noun in (
        Noun("book", "books", "本", "书", "print"),
        Noun("novel", "novels", "本", "小说", "text"),
        Noun("dictionary", "dictionaries", "本", "词典", "print"),
        Noun("magazine", "magazines", "本", "杂志", "print"),
        Noun("newspaper", "newspapers", "份", "报纸", "print"),
        Noun("letter", "letters", "封", "信", "text"),
        Noun("email", "emails", "封", "邮件", "text"),
        Noun("report", "reports", "份", "报告", "text"),
        Noun("story", "stories", "个", "故事", "text"),
        Noun("poem", "poems", "首", "诗", "text"),
        Noun("shirt", "shirts", "件", "衬衫", "clothing"),
        Noun("coat", "coats", "件", "大衣", "clothing"),
        Noun("sweater", "sweaters", "件", "毛衣", "clothing"),
        Noun("skirt", "skirts", "条", "裙子", "clothing"),
        Noun("scarf", "scarves", "条", "围巾", "clothing"),
        Noun("hat", "hats", "顶", "帽子", "clothing"),
        Noun("bag", "bags", "个", "包", "clothing"),
        Noun("umbrella", "umbrellas", "把", "雨伞", "clothing"),
        Noun("computer", "computers", "台", "电脑", "machine"),
        Noun("camera", "cameras", "台", "相机", "machine"),
        Noun("phone", "phones", "部", "手机", "machine"),
        Noun("television", "televisions", "台", "电视机", "machine"),
        Noun("watch", "watches", "块", "手表", "machine"),
        Noun("car", "cars", "辆", "汽车", "vehicle"),
        Noun("bicycle", "bicycles", "辆", "自行车", "vehicle"),
        Noun("table", "tables", "张", "桌子", "furniture"),
        Noun("chair", "chairs", "把", "椅子", "furniture"),
        Noun("bed", "beds", "张", "床", "furniture"),
        Noun("box", "boxes", "个", "盒子", "furniture"),
        Noun("cat", "cats", "只", "猫", "animal"),
        Noun("dog", "dogs", "只", "狗", "animal"),
        Noun("bird", "birds", "只", "鸟", "animal"),
        Noun("rabbit", "rabbits", "只", "兔子", "animal"),
        Noun("chicken", "chickens", "只", "鸡", "animal"),
        Noun("horse", "horses", "匹", "马", "animal"),
        Noun("cow", "cows", "头", "牛", "animal"),
        Noun("pig", "pigs", "头", "猪", "animal"),
        Noun("apple", "apples", "个", "苹果", "food"),
        Noun("orange", "oranges", "个", "橙子", "food"),
        Noun("pear", "pears", "个", "梨", "food"),
        Noun("watermelon", "watermelons", "个", "西瓜", "food"),
        Noun("egg", "eggs", "个", "鸡蛋", "food"),
        Noun("cake", "cakes", "个", "蛋糕", "food"),
        Noun("sandwich", "sandwiches", "个", "三明治", "food"),
        Noun("dumpling", "dumplings", "个", "饺子", "food"),
        Noun("tea", "tea", "杯", "茶", "drink", _CUP),
        Noun("coffee", "coffee", "杯", "咖啡", "drink", _CUP),
        Noun("milk", "milk", "杯", "牛奶", "drink", _CUP),
        Noun("water", "water", "杯", "水", "drink", _CUP),
        Noun("juice", "juice", "瓶", "果汁", "juice", _BOTTLE),
        Noun("soup", "soup", "碗", "汤", "dish", _BOWL),
        Noun("rice", "rice", "碗", "米饭", "dish", _BOWL),
        Noun("noodles", "noodles", "碗", "面条", "dish", _BOWL),
        Noun("pen", "pens", "支", "钢笔", "tool"),
        Noun("pencil", "pencils", "支", "铅笔", "tool"),
        Noun("key", "keys", "把", "钥匙", "tool"),
        Noun("knife", "knives", "把", "刀", "tool"),
        Noun("ticket", "tickets", "张", "票", "ticket"),
        Noun("map", "maps", "张", "地图", "map"),
        Noun("photo", "photos", "张", "照片", "photo"),
        Noun("painting", "paintings", "幅", "画", "picture"),
        Noun("flower", "flowers", "朵", "花", "flower"),
    )
}

VERBS = (
    _verb("buy buys bought buying", "买",
          "book dictionary shirt coat skirt umbrella car bicycle computer phone watch table bed cat horse orange egg "
          "milk water flower ticket pen"),
    _verb("sell sells sold selling", "卖",
          "car bicycle horse cow pig chicken rabbit camera television chair bed hat scarf sweater orange pear tea "
          "juice flower painting newspaper"),
    _verb("read reads read reading", "读",
          "book novel magazine newspaper letter email report story poem"),
    _verb("write writes wrote writing", "写",
          "novel letter email report story poem"),
    _verb("drink drinks drank drinking", "喝",
          "tea coffee milk water juice soup"),
    _verb("eat eats ate eating", "吃",
          "apple orange pear watermelon egg cake sandwich dumpling rice noodles"),
    _verb("wash washes washed washing", "洗",
          "shirt coat sweater skirt scarf hat bag car bicycle dog horse apple pear knife"),
    _verb("draw draws drew drawing", "画",
          "cat dog bird rabbit horse chicken cow pig flower map apple car hat umbrella"),
    _verb("borrow borrows borrowed borrowing", "借",
          "book novel dictionary magazine pen pencil umbrella bicycle car camera knife chair map"),
    _verb("feed feeds fed feeding", "喂",
          "cat dog bird rabbit chicken horse cow pig"),
    _verb("repair repairs repaired repairing", "修理",
          "car bicycle computer phone camera television watch table chair bed umbrella"),
    _verb("use uses used using", "用",
          "pen pencil computer phone camera knife dictionary map key bag umbrella table"),
    _verb("send sends sent sending", "寄",
          "letter book photo box scarf map painting ticket report magazine newspaper"),
    _verb("make makes made making", "做",
          "cake sandwich dumpling coffee soup noodles rice chair table box skirt hat bag"),
    _verb("choose chooses chose choosing", "挑选",
          "shirt coat sweater skirt scarf hat bag watch painting flower novel camera phone watermelon dog"),
    _verb("check checks checked checking", "检查",
          "car bicycle ticket report bag box computer letter phone email television key photo egg"),
    _verb("collect collects collected collecting", "收集",
          "photo map ticket painting watch pen pencil key newspaper story poem box"),
    _verb("order orders ordered ordering", "点",
          "tea coffee milk water juice soup rice noodles sandwich dumpling cake"),
)  # fmt: skip
_OBJECTS = {verb.base: verb.objects for verb in VERBS}
# Verbs of giving name a receiver between themselves and the object; to lend and to borrow are both 借.
GIVING_VERBS = (
    Verb("give", "gives", "gave", "giving", "送给",
         _list("hat scarf watch book novel flower umbrella cat dog painting cake pen bag apple photo")),
    Verb("lend", "lends", "lent", "lending", "借给", _OBJECTS["borrow"]),
    Verb("sell", "sells", "sold", "selling", "卖给", _OBJECTS["sell"]),
    Verb("send", "sends", "sent", "sending", "寄给", _OBJECTS["send"]),
)  # fmt: skip

NUMBERS = tuple(
    Phrase(english, chinese)
    for english, chinese in zip(
        _list("two three four five six seven eight nine ten"), "两三四五六七八九十", strict=True
    )
)

PAST_TIMES = (
    Phrase(" yesterday", "昨天"),
    Phrase(" yesterday evening", "昨天晚上"),
    Phrase(" this morning", "今天早上"),
    Phrase(" three days ago", "三天前"),
    Phrase(" last Sunday", "上个星期天"),
    Phrase(" last week", "上个星期"),
    Phrase(" last month", "上个月"),
    Phrase(" last year", "去年"),
)
FUTURE_TIMES = (
    Phrase(" tomorrow", "明天"),
    Phrase(" tomorrow morning", "明天早上"),
    Phrase(" this evening", "今天晚上"),
    Phrase(" next Sunday", "下个星期天"),
    Phrase(" next week", "下个星期"),
    Phrase(" next month", "下个月"),
    Phrase(" next year", "明年"),
)
FREQUENCIES = (
    Phrase(" every day", "每天"),
    Phrase(" every morning", "每天早上"),
    Phrase(" every evening", "每天晚上"),
    Phrase(" every Sunday", "每个星期天"),
    Phrase(" every week", "每个星期"),
    Phrase(" every month", "每个月"),
)
ADVERBS = (
    Phrase("often", "经常"),
    Phrase("sometimes", "有时"),
    Phrase("usually", "通常"),
    Phrase("never", "从不"),
)

PLACES = {
    name: Phrase(f" {preposition} {name}", chinese)
    for preposition, name, chinese in (
        ("at", "home", "在家里"),
        ("at", "school", "在学校"),
        ("at", "the market", "在市场"),
        ("at", "the library", "在图书馆"),
        ("at", "the station", "在车站"),
        ("at", "the hospital", "在医院"),
        ("at", "the airport", "在机场"),
        ("at", "the hotel", "在酒店"),
        ("at", "the museum", "在博物馆"),
        ("at", "the restaurant", "在餐厅"),
        ("in", "the park", "在公园里"),
        ("in", "the kitchen", "在厨房里"),
        ("in", "the office", "在办公室里"),
        ("in", "the garden", "在花园里"),
        ("in", "the shop", "在商店里"),
        ("in", "the classroom", "在教室里"),
        ("in", "Beijing", "在北京"),
        ("in", "Shanghai", "在上海"),
        ("in", "London", "在伦敦"),
        ("in", "Paris", "在巴黎"),
    )
}

LANDMARKS = {
    "tree": "树", "sofa": "沙发", "desk": "书桌", "bench": "长椅",
    "piano": "钢琴", "truck": "卡车", "bookcase": "书架", "statue": "雕像",
}  # fmt: skip
SIDES = (
    Phrase("under", "下面"),
    Phrase("behind", "后面"),
    Phrase("beside", "旁边"),
    Phrase("in front of", "前面"),
)
# What may lie or sit at a landmark.
SMALL_THINGS = _list(
    "cat dog bird rabbit chicken book hat bag box umbrella key pen pencil knife phone camera apple orange egg scarf "
    "watermelon"
)
