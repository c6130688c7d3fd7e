// The words of the page in Chinese, by their English; the page speaks the language that its `lang` names.

const CHINESE = {
  Attention: "注意力",
  "Position bias": "位置偏置",
  Alignment: "对齐",
  Positions: "位置",
  Masks: "掩码",
  "May attend": "可以关注",
  Patterns: "注意力模式",
  Saliency: "显著性",
  "Encoder self-attention": "编码器自注意力",
  "Decoder self-attention": "解码器自注意力",
  "Cross-attention": "交叉注意力",
  "Causal self-attention": "因果自注意力",
  "Encoder position bias": "编码器位置偏置",
  "Decoder position bias": "解码器位置偏置",
  "Causal position bias": "因果位置偏置",
  source: "源文",
  target: "译文",
  from: "从",
  to: "到",
  written: "写出的词元",
  input: "输入",
  position: "位置",
  dimension: "维度",
  sees: "看到",
  "mean of all": "全部平均",
  "Switch between light and dark": "切换浅色与深色",
  "Moses format": "Moses 格式",
  "What is shown": "显示内容",
  View: "视图",
  Layer: "层",
  Head: "头",
  "Step by step": "逐步查看",
  "Previous step": "上一步",
  "Next step": "下一步",
  Step: "步",
  "Most likely tokens": "最可能的词元",
  "Source (cross-attention)": "源文（交叉注意力）",
  "Read so far (self-attention)": "已读入（自注意力）",
  "Read so far": "已读入",
  "Largest weights": "最大的权重",
  "Heads side by side": "各头对照",
  Matrix: "矩阵",
  "Smaller cells": "缩小格子",
  "Larger cells": "放大格子",
  "Which words moved the label": "哪些词影响了标签",
  "Gradient × input: blue words raised the log-odds of": "梯度 × 输入：蓝色的词提高了该标签的对数几率：",
  "(probability": "（概率",
  "), orange ones lowered them. Point at a word to see how much.": "），橙色的词则降低了它。指向一个词可以看到数值。",
  "Keys:": "按键：",
  "next and previous layer,": "下一层、上一层，",
  "head,": "头，",
  "token or step; arrow keys move among tokens, heads and cells.": "词元或步；方向键在词元、头和格子之间移动。",
  "Head {name}": "头 {name}",
  "{title} (point at a token)": "{title}（指向一个词元）",
  "{step} of {count}": "第 {step} 步，共 {count} 步",
  "step {step}: writes {token}": "第 {step} 步：写出 {token}",
  "After ": "读到 ",
  " the model wrote ": " 之后，模型写出 ",
  " with probability {chance}.": "，概率 {chance}。",
  ", layer {layer}, head {head}": "，第 {layer} 层，头 {head}",
  "{title}{where}: {rows} rows, {columns} columns": "{title}{where}：{rows} 行，{columns} 列",
  "A filled cell means that the row may attend to the column.": "涂色的格子表示：这一行可以关注这一列。",
  "A filled cell means that the row may attend to the column in this layer and head.": "涂色的格子表示：在这一层的这个头中，这一行可以关注这一列。",
  "Each row is a source token and shows how it distributes its attention over the whole source.":
    "每一行是源文的一个词元，显示它的注意力如何分布在整句源文上。",
  "Each row is a target token that the decoder has read; it may attend to itself and to earlier tokens.":
    "每一行是解码器读入的一个译文词元，它可以关注自己和更早的词元。",
  "Each row is a target token as it is written and shows which source tokens the decoder attended to.":
    "每一行是正在写出的一个译文词元，显示解码器此时关注了哪些源文词元。",
  "Each row is a token that the model has read; it may attend to itself and to earlier tokens.":
    "每一行是模型读入的一个词元，它可以关注自己和更早的词元。",
  "What is added to the scores of each row by the distance of the column, in every layer.":
    "各层按列的距离加到每一行得分上的值。",
  "Links each target word to the source word that it attended to most; the end of sentence is ignored.":
    "把每个译文词连到它关注最多的源文词；不计句末符。",
  "The vectors that are added to the embeddings: one row per position, one column per dimension.":
    "加到词向量上的向量：每个位置一行，每个维度一列。",
  "Gradient × input: how much each input token raised (or, below zero, lowered) the log-odds of the token that was written.":
    "梯度 × 输入：每个输入词元把所写词元的对数几率提高（负值为降低）了多少。",
  "Attention over a picture": "图片上的注意力",
  "The picture as the model read it": "模型读入的图片",
  "Strength of the colours": "颜色深浅",
  "Attention rollout": "注意力展开",
  "Gradient × input": "梯度 × 输入",
  "All layers together": "所有层合在一起",
  "Layer {layer}": "第 {layer} 层",
  "Layer {layer}, head {head}": "第 {layer} 层，头 {head}",
  "Red: what this head looks at (from [CLS], or all patches on average).":
    "红色：这个头关注的地方（从 [CLS] 出发，或所有图块的平均）。",
  "Attention rollout: attention through all layers. Red patches reach the answer most.":
    "注意力展开：穿过所有层的注意力。红色图块对结果的贡献最大。",
  "Gradient × input: blue pixels raised the log-odds of the label, orange ones lowered them.":
    "梯度 × 输入：蓝色像素提高了该标签的对数几率，橙色像素则降低了它。",
  "Attention over sound": "声音上的注意力",
  Play: "播放",
  Stop: "停止",
  "mean of the heads that follow the sound": "跟随声音的各头的平均",
  "{token}: most at {seconds} s": "{token}：{seconds} 秒处关注最多",
  "Spectrogram of the sound: time to the right, high frequencies at the top": "声音的频谱图：时间向右，高频在上",
  "Cross-attention: one row per token, time to the right": "交叉注意力：每个词元一行，时间向右",
  "Above, the colour shows which part of the sound the model attends to while it writes the marked token. Below, each row is a token; click one, or use the arrow keys.":
    "上图的颜色显示模型写出所标词元时关注声音的哪一部分；下图每一行是一个词元，可以点击，也可以用方向键选择。",
};
const chinese = document.documentElement.lang.startsWith("zh");

function t(english, values = {}) {
  const text = (chinese && CHINESE[english]) || english;
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

// What stands in the page from the beginning; the two sentences are not the page's words.
function translatePage() {
  if (!chinese) return;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const english = node.textContent.trim().replace(/\s+/g, " ");
    if (!node.parentElement.closest(".sentences, script") && CHINESE[english]) node.textContent = CHINESE[english];
  }
  for (const name of ["aria-label", "alt"]) {
    for (const labelled of document.querySelectorAll(`[${name}]`)) labelled.setAttribute(name, t(labelled.getAttribute(name)));
  }
}
