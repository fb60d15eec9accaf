# loud_data ROWS: a CSV of 8 x 8 images with inputs near the end of FP16's range, four classes, a fifth of the labels drawn at
# random. The first convolution's outputs pass FP16's range while its weights grow; FP32 and BF16 train well. Sourced.
loud_data() {
    awk -v rows="$1" 'BEGIN { srand(7); for (i = 0; i < rows; i++) { c = i % 4; for (j = 0; j < 64; j++)
        printf "%.4g,", (int(j / 8) % 4 == c ? 1 : 0.6) * 43000 * (0.5 + rand()); print rand() < 0.2 ? int(4 * rand()) : c } }'
}
