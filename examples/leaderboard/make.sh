#!/bin/sh
# Rate five bots and two fake models by one book, submit the runs and make the site: sh examples/leaderboard/make.sh [FOLDER]
set -e
folder=${1:-leaderboard} games=${GAMES:-100}
mkdir -p "$folder/submissions"
for player in StefaBot ClaudeBot UsualBot AdaptyBoi RandomBoi house:house-sharp@plain house:house-honest@plain; do
    name=$(echo "$player" | tr : -)
    dubito run --bots StefaBot,ClaudeBot,UsualBot --table-sizes 4 --seed 1 --games "$games" --contenders "$player" \
        --no-report --quiet --output "$folder/runs/$name" > /dev/null
    dubito export "$folder/runs/$name" "$folder/submissions/$name.zip"
done
dubito leaderboard "$folder/submissions" --output "$folder/site" --title "Bots and fake models"
